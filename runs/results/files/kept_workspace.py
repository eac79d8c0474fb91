"""Read a trial's stored workspace file by file."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from evalhub.lib.limits import LONGEST_TEXT
from scenarios.text_difference import lines_of, text_difference


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
