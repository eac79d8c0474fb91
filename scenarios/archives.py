"""Read zip and tar archives into memory, never to disk."""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from scenarios.bundle_limits import (
    MAX_ARCHIVE_BYTES,
    MAX_FILE_BYTES,
    MAX_MEMBERS,
    MAX_TOTAL_BYTES,
    Member,
    bundle_error,
    check_path,
    is_litter,
    too_large,
    too_large_file,
    too_many,
)

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


def is_archive(name: str, data: bytes) -> bool:
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
