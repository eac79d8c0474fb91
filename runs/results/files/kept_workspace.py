"""Read a trial's stored workspace file by file."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

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
