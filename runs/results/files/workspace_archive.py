"""Find a workspace's changed files, archive it, and read a stored workspace file by file."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.redaction import mask_values, mask_values_in_bytes
from runs.sandbox.safe_paths import open_beneath, read_beneath
from runs.sandbox.safe_walk import MOST_ENTRIES, files_beneath
from scenarios.archives import MAX_ARCHIVE_BYTES
from scenarios.differences import lines_of, text_difference
from scenarios.formats.parsed import FixtureFile

MAX_FILES = 10_000
MAX_FILE_BYTES = 5 << 20


Change = Literal["added", "changed", "removed"]
KINDS: tuple[Change, ...] = ("added", "changed", "removed")


@dataclass(frozen=True, order=True)
class ChangedFile:
    """One file that differs from the fixture."""

    path: str
    change: Change
    size: int | None = None
    """Current size in bytes; None if removed."""
    added: int | None = None
    removed: int | None = None
    """Added and removed lines; None if not compared."""


@dataclass(frozen=True)
class WorkspaceArchive:
    """A workspace as a compressed tar file, and the files left out."""

    content: bytes
    left_out: tuple[str, ...] = ()


def changed_files(workspace: Path, fixture: Iterable[FixtureFile]) -> tuple[ChangedFile, ...]:
    """Return the regular files that differ from the workspace's start, sorted by path.

    Links and special files are not followed; at most 10,000 files are compared.
    """
    before = {file.path: file for file in fixture}
    seen: set[str] = set()
    changes: list[ChangedFile] = []
    for path, state in files_beneath(workspace, most=MAX_FILES):
        seen.add(path)
        if path not in before:
            changes.append(ChangedFile(path, "added", state.st_size))
        elif not _same(workspace, path, state.st_size, before[path].content):
            changes.append(ChangedFile(path, "changed", state.st_size))
    changes += [
        ChangedFile(path, "removed") for path in before.keys() - seen if not _is_file(workspace, path)
    ]
    return tuple(sorted(changes))


def is_gits_own(path: str) -> bool:
    """Return whether a file is Git metadata, which says little about the agent's work."""
    return ".git" in path.split("/")[:-1]


def archive_workspace(
    workspace: Path,
    *,
    max_file_bytes: int = MAX_FILE_BYTES,
    max_bytes: int = MAX_ARCHIVE_BYTES,
    secrets: tuple[str, ...] = (),
    is_late: Callable[[], bool] = lambda: False,
) -> WorkspaceArchive:
    """Return the regular files of a workspace as tar.gz, these values masked in them and in their paths.

    Files over the limits of number and size, and those for which it is late, are listed instead.
    """
    names = _MaskedNames(secrets)
    buffer = io.BytesIO()
    left_out: list[str] = []
    total = 0
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as tar:
        for number, (path, state) in enumerate(sorted(files_beneath(workspace, most=MOST_ENTRIES))):
            fits = number < MAX_FILES and total + state.st_size <= max_bytes and not is_late()
            content = _content(workspace, path, max_file_bytes) if fits else None
            if content is None:
                left_out.append(names.of(path))
                continue
            total += len(content)
            content = mask_values_in_bytes(content, secrets)
            entry = tarfile.TarInfo(names.of(path))
            entry.size = len(content)
            entry.mode = 0o755 if state.st_mode & stat.S_IXUSR else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return WorkspaceArchive(buffer.getvalue(), tuple(left_out))


class _MaskedNames:
    """Paths without secret values; two that become the same are numbered."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._secrets = secrets
        self._used: Counter[str] = Counter()

    def of(self, path: str) -> str:
        masked = mask_values(path, self._secrets)
        if masked == path:
            return path
        self._used[masked] += 1
        count = self._used[masked]
        return masked if count == 1 else f"{masked}.{count}"


def _content(workspace: Path, path: str, limit: int) -> bytes | None:
    try:
        return read_beneath(workspace, path, limit=limit)
    except OSError:  # too large, gone or unreadable
        return None


def _same(workspace: Path, path: str, size: int, before: bytes) -> bool:
    if size != len(before):
        return False
    now = _content(workspace, path, size)
    return now is not None and hashlib.sha256(now).digest() == hashlib.sha256(before).digest()


def _is_file(workspace: Path, path: str) -> bool:
    """Return whether the path is a regular file, following links within the workspace."""
    try:
        descriptor = open_beneath(workspace, path, os.O_RDONLY)
    except OSError:  # gone, outside or unreadable
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def text_of_file(content: bytes) -> str | None:
    """Return a file's text, None for a binary file."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def changed_lines(before: bytes, after: bytes) -> tuple[int, int] | None:
    """Return the numbers of added and removed lines, None for binary or long files."""
    if max(len(before), len(after)) > LONGEST_TEXT:
        return None
    old, new = text_of_file(before), text_of_file(after)
    if old is None or new is None:
        return None
    difference = text_difference(lines_of(old), lines_of(new))
    return (difference.added, difference.removed) if difference else None


UNREADABLE = (tarfile.TarError, zlib.error, EOFError, OSError)
"""Exceptions of a missing, truncated or damaged archive."""


@dataclass(frozen=True)
class KeptFile:
    """One file of a stored workspace."""

    number: int
    """Its position in the archive, used for downloads: a path may not fit a URL."""
    path: str
    size: int
    executable: bool = False


def kept_files(
    archive: IO[bytes], with_content: Callable[[KeptFile], bool] = lambda file: False
) -> Iterator[tuple[KeptFile, bytes]]:
    """Yield an open archive's files, with the content of those that `with_content` selects.

    One file at a time is in memory. Raises one of `UNREADABLE`.
    """
    with tarfile.open(fileobj=archive, mode="r:gz") as packed:
        for number, entry in enumerate(packed):
            file = KeptFile(number, entry.name, entry.size, bool(entry.mode & 0o100))
            stream = packed.extractfile(entry) if with_content(file) else None
            yield file, stream.read() if stream else b""


def kept_file(archive: IO[bytes], number: int) -> tuple[KeptFile, bytes] | None:
    """Return the file at a position with its content, None if missing. Raises one of `UNREADABLE`."""
    files = kept_files(archive, lambda file: file.number == number)
    return next((each for each in files if each[0].number == number), None)
