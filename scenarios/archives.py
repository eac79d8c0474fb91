"""Read zip and tar archives into memory, never to disk, and check the sizes and paths of bundles."""

from __future__ import annotations

import errno
import gzip
import io
import posixpath
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from scenarios.formats.parsed import Problem, ScenarioFileError

MAX_ARCHIVE_BYTES = 50 * 1024 * 1024
MAX_MEMBERS = 5_000
MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_TOTAL_BYTES = 100 * 1024 * 1024
MAX_PATH = 400

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Member:
    """One regular file of a folder or archive."""

    path: str
    content: bytes
    executable: bool = False


def bundle_error(archive: str, member: str, what: str, fix: str, id: str) -> ScenarioFileError:
    """Return the error for a rejected bundle."""
    shown = member.encode("utf-8", "backslashreplace").decode()
    return ScenarioFileError([Problem(file=archive, line=1, where=shown, what=what, fix=fix, id=id)])


def collect(archive: str, members: Iterable[Member]) -> list[Member]:
    """Return the relevant members, sorted. Raises `ScenarioFileError` at the first over a limit."""
    by_path: dict[str, Member] = {}
    total = 0
    for member in members:
        if is_litter(member.path):
            continue
        check_path(archive, member.path)
        total += len(member.content)
        if len(member.content) > MAX_FILE_BYTES:
            raise too_large_file(archive, member.path)
        check_total(archive, size=total, count=len(by_path) + 1)
        if member.path.casefold() in by_path:
            what = "Two files have this path, or paths that differ only in case."
            raise bundle_error(archive, member.path, what, "Rename one of them.", "bundle/same-path")
        by_path[member.path.casefold()] = member
    _check_folders(archive, by_path)
    return sorted(by_path.values(), key=lambda member: member.path)


def is_litter(path: str) -> bool:
    """Return whether a path belongs to a file manager or version control."""
    return posixpath.basename(path) in {".DS_Store", "Thumbs.db"} or not {"__MACOSX", ".git"}.isdisjoint(
        path.split("/")[:-1]
    )


def check_path(archive: str, path: str) -> None:
    """Reject a path that leads outside or is not portable."""
    fix = "Use relative paths with forward slashes."
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        raise bundle_error(archive, path, "The path is absolute.", fix, "bundle/absolute-path")
    if "\\" in path:
        raise bundle_error(archive, path, "The path has a backslash.", fix, "bundle/backslash")
    if _CONTROL.search(path):
        raise bundle_error(
            archive, path, "The path has a control character or is not UTF-8.", fix, "bundle/bad-path"
        )
    parts = path.split("/")
    if ".." in parts:
        raise bundle_error(archive, path, "The path contains '..'.", fix, "bundle/upward-path")
    if "" in parts or "." in parts:
        raise bundle_error(archive, path, "The path has an empty part or '.'.", fix, "bundle/bad-path")
    if len(path.encode()) > MAX_PATH:
        what = f"The path is longer than {MAX_PATH} bytes."
        raise bundle_error(archive, path, what, "Shorten it.", "bundle/long-path")


def check_total(archive: str, *, size: int, count: int) -> None:
    """Reject files that are too large or too many together."""
    if size > MAX_TOTAL_BYTES:
        raise too_large(archive)
    if count > MAX_MEMBERS:
        raise too_many(archive)


def too_large_file(archive: str, path: str) -> ScenarioFileError:
    """Return the error for one file that is too large."""
    what = f"The file is larger than {MAX_FILE_BYTES:,} bytes."
    return bundle_error(
        archive, path, what, "Make it smaller, or download it in setup.commands.", "bundle/large-file"
    )


def too_large(archive: str) -> ScenarioFileError:
    """Return the error for files that are too large in total."""
    what = f"The files have more than {MAX_TOTAL_BYTES:,} bytes in total."
    return bundle_error(
        archive, "", what, "Split the suite or make its fixtures smaller.", "bundle/too-large"
    )


def too_many(archive: str) -> ScenarioFileError:
    """Return the error for too many files."""
    what = f"The upload has more than {MAX_MEMBERS:,} files."
    return bundle_error(archive, "", what, "Split the suite.", "bundle/too-many-files")


def _check_folders(archive: str, by_path: dict[str, Member]) -> None:
    for member in by_path.values():
        folder = member.path.casefold()
        while folder := posixpath.dirname(folder):
            if folder in by_path:
                what = "The path is both a file and a folder."
                raise bundle_error(
                    archive, by_path[folder].path, what, "Rename one of them.", "bundle/same-path"
                )


def read_whole(path: Path, *, most: int = MAX_FILE_BYTES) -> bytes:
    """Return a file's content. Raises `OSError` for a larger file, because a device could fill the memory."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
    return content


_TAR_MAGIC = slice(257, 262)
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)
"""Exceptions of the standard library for truncated, encrypted or invalid archives."""


def is_archive_file(name: str, data: bytes) -> bool:
    """Return whether data is an archive, by its first bytes or its extension."""
    begins = data.startswith((b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b")) or data[_TAR_MAGIC] == b"ustar"
    return begins or name.lower().endswith((".zip", ".tar", ".tar.gz", ".tgz"))


def read_members(name: str, data: bytes) -> Iterator[Member]:
    """Yield the files of an archive, counting sizes while reading. Raises `ScenarioFileError`."""
    if len(data) > MAX_ARCHIVE_BYTES:
        what = f"The archive has {len(data):,} bytes; the limit is {MAX_ARCHIVE_BYTES:,}."
        raise bundle_error(
            name, "", what, "Split the suite or make its fixtures smaller.", "bundle/large-archive"
        )
    try:
        if data.startswith(b"PK"):
            yield from _zip_members(name, data)
        else:
            yield from _tar_members(name, data)
    except _BROKEN as error:
        what = f"The archive cannot be read: {str(error).rstrip('.') or type(error).__name__}."
        raise bundle_error(
            name, "", what, "Create it again as zip or tar.gz, without a password.", "bundle/broken-archive"
        ) from error


def _zip_members(name: str, data: bytes) -> Iterator[Member]:
    # Opening creates an object for each entry, so they are counted first.
    if data.count(b"PK\x01\x02") > MAX_MEMBERS:
        raise too_many(name)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            if entry.is_dir() or is_litter(entry.filename):
                continue
            # `filename` is cut at a NUL and normalized, so the original name is checked.
            check_path(name, entry.orig_filename)
            mode = entry.external_attr >> 16
            if stat.S_ISLNK(mode):
                raise _link(name, entry.filename, "symbolic")
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise _not_regular(name, entry.filename)
            # zipfile unpacks other methods without a limit: a few bytes of bzip2 hold gigabytes.
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                what = "It is compressed by another method than Deflate."
                fix = "Pack it with Deflate, which zip programs use by default."
                raise bundle_error(name, entry.filename, what, fix, "bundle/compression")
            with archive.open(entry) as file:
                content = _read(file, name, entry.filename)
            yield Member(entry.filename, content, executable=bool(mode & stat.S_IXUSR))


def _tar_members(name: str, data: bytes) -> Iterator[Member]:
    plain = _unpack(name, data) if data.startswith(b"\x1f\x8b") else data
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
        for count, entry in enumerate(archive):
            if count > 2 * MAX_MEMBERS:
                raise too_many(name)
            if entry.isdir() or is_litter(entry.name):
                continue
            path = entry.name.removeprefix("./")
            check_path(name, path)
            yield Member(path, _tar_content(archive, entry, name), executable=bool(entry.mode & stat.S_IXUSR))


def _tar_content(archive: tarfile.TarFile, entry: tarfile.TarInfo, name: str) -> bytes:
    if entry.issym() or entry.islnk():
        raise _link(name, entry.name, "symbolic" if entry.issym() else "hard")
    file = archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
    if file is None:
        raise _not_regular(name, entry.name)
    with file:
        return _read(file, name, entry.name)


def _unpack(name: str, data: bytes) -> bytes:
    """Return the tar in a gzip; headers may be as large as small files."""
    limit = MAX_TOTAL_BYTES + 2 * MAX_MEMBERS * tarfile.BLOCKSIZE
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise too_large(name)
    return content


def _read(file: IO[bytes], name: str, path: str) -> bytes:
    content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise too_large_file(name, path)
    return content


def _link(name: str, path: str, kind: str) -> Exception:
    return bundle_error(
        name, path, f"It is a {kind} link.", "Pack a copy of the file instead.", "bundle/link"
    )


def _not_regular(name: str, path: str) -> Exception:
    return bundle_error(name, path, "It is neither a file nor a folder.", "Remove it.", "bundle/not-regular")
