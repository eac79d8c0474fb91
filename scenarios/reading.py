"""Read uploads: in this process, or on a server in another one with limits of time and memory (`set_reader`).

A command reads its own user's files here, which is fastest; a server reads other people's.
"""

from __future__ import annotations

from typing import Protocol

from scenarios import bundles
from scenarios.bundles import Bundle
from scenarios.formats import parse_files
from scenarios.formats.parsed import ParsedSuite


class Reader(Protocol):
    """Reads what people upload. Raises `ScenarioFileError`, and `TryLater` where it can't be read now."""

    def read_upload(self, name: str, data: bytes) -> Bundle:
        """Return the files of an archive, or the single file."""

    def read_suites(self, bundle: Bundle, *, command_pattern: str, strict: bool) -> tuple[ParsedSuite, ...]:
        """Return the suites in an upload's files."""


class ReaderHere:
    """Reads in this process."""

    def read_upload(self, name: str, data: bytes) -> Bundle:
        return bundles.read_upload(name, data)

    def read_suites(self, bundle: Bundle, *, command_pattern: str, strict: bool) -> tuple[ParsedSuite, ...]:
        return parse_files(
            bundle.files,
            name=bundle.name,
            command_pattern=command_pattern,
            executables=bundle.executables,
            decoded=bundle.decoded,
            strict=strict,
        )


_readers: list[Reader] = [ReaderHere()]


def set_reader(reader: Reader) -> None:
    """Set what reads uploads from now on."""
    _readers[:] = [reader]


def read_upload(name: str, data: bytes) -> Bundle:
    """Return the files of an uploaded archive, or the single file. Raises `ScenarioFileError` and `TryLater`."""
    return _readers[0].read_upload(name, data)


def read_suites(
    bundle: Bundle, *, command_pattern: str = "", strict: bool = False
) -> tuple[ParsedSuite, ...]:
    """Return the suites of a bundle.

    `command_pattern` is the project's, for scenarios without one. `strict` rejects eval cases that assert nothing or
    have unknown keys. Raises `ScenarioFileError` with every problem of every file, and `TryLater`.
    """
    return _readers[0].read_suites(bundle, command_pattern=command_pattern, strict=strict)
