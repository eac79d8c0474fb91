"""The workspace that is kept of a trial, read file by file."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

UNREADABLE = (tarfile.TarError, zlib.error, EOFError, OSError)
"""What reading an archive raises that is gone, cut off or damaged."""


@dataclass(frozen=True)
class KeptFile:
    """One file of a kept workspace."""

    number: int
    """Its place in the archive, by which it is downloaded: a path may hold what no address does."""
    path: str
    size: int


def kept_files(
    archive: IO[bytes], wanted: Callable[[KeptFile], bool] = lambda file: False
) -> Iterator[tuple[KeptFile, bytes]]:
    """Yield the files of an open archive, each with its content where that is wanted, else with none.

    One file at a time is in memory. Raises one of `UNREADABLE`.
    """
    with tarfile.open(fileobj=archive, mode="r:gz") as packed:
        for number, entry in enumerate(packed):
            file = KeptFile(number, entry.name, entry.size)
            stream = packed.extractfile(entry) if wanted(file) else None
            yield file, stream.read() if stream else b""


def kept_file(archive: IO[bytes], number: int) -> tuple[KeptFile, bytes] | None:
    """Return the file at this place with its content, None where there is none. Raises one of `UNREADABLE`."""
    found = (each for each in kept_files(archive, lambda file: file.number == number))
    return next((each for each in found if each[0].number == number), None)
