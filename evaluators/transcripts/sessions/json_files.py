"""Session files of JSON: what they are, by their first lines or their keys, and their objects."""

from __future__ import annotations

from collections.abc import Iterator
from io import SEEK_END
from itertools import islice
from typing import IO

import msgspec

from evalhub.lib.limits import LARGEST_FILE, LARGEST_RECORD
from evaluators.model import Json
from evaluators.transcripts.stream import Object, json_or_none

MOST_PROBLEMS = 20
"""Sentences kept for one file."""
LOOKED_AT = 1_000
"""Lines, or items of a list, by which a file is recognised."""

_decode = msgspec.json.Decoder().decode
_decode_keys = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class UnreadableSession(Exception):
    """A file has no session; the message says why in a sentence."""


class Problems(list[str]):
    """Sentences about the parts of a file that could not be read, at most `MOST_PROBLEMS`."""

    def add(self, line: int, sentence: str) -> None:
        """Add a sentence about a line."""
        if len(self) < MOST_PROBLEMS:
            self.append(f"line {line}: {sentence}")


def outline(file: IO[bytes]) -> Iterator[Object]:
    """Yield the objects of a file's first lines, or the one that it is; those of a list. Large values are emptied.

    Raises `UnreadableSession` for JSON that is broken.
    """
    first = _first_line(file)
    if _keys(first) is None and first.lstrip()[:1] in (b"{", b"["):
        try:
            yield from _of_document(_read_whole(file))
            return
        except UnreadableSession:
            # The first line may be cut off; the others are read.
            file.seek(0)
            values = list(_of_lines(file))
            if not values:
                raise
            yield from values
    else:
        yield from _of_lines(file)


def _of_lines(file: IO[bytes]) -> Iterator[Object]:
    lines = iter(lambda: file.readline(LARGEST_RECORD), b"")
    for line in islice(lines, LOOKED_AT):
        if (value := _keys(line)) is not None:
            yield value


def _of_document(content: bytes) -> Iterator[Object]:
    if (value := _keys(content)) is not None:
        yield value
        return
    try:
        items = _decode_items(content)
    except (ValueError, RecursionError):
        whole_json_of(content)
        return
    for item in items[:LOOKED_AT]:
        if (value := _keys(item)) is not None:
            yield value


def _keys(content: bytes | msgspec.Raw) -> Object | None:
    """Return an object with its large values emptied, None for anything else."""
    try:
        return {key: _small(value) for key, value in _decode_keys(content).items()}
    except (ValueError, RecursionError):
        return None


def _small(value: msgspec.Raw) -> Json:
    if len(view := memoryview(value)) <= LARGEST_FILE:
        return _decode(value)
    return {ord("{"): {}, ord("["): []}.get(view[0], "")


def _first_line(file: IO[bytes]) -> bytes:
    """Return the first line that isn't empty; the file is at its beginning then."""
    first = next((line for line in iter(lambda: file.readline(LARGEST_RECORD), b"") if line.strip()), b"")
    file.seek(0)
    return first


def read_objects(file: IO[bytes], problems: Problems) -> Iterator[Object]:
    """Yield the JSON objects of a file with one on each line, one at a time."""
    number = 0
    while line := file.readline(LARGEST_RECORD):
        number += 1
        if len(line) == LARGEST_RECORD and not line.endswith(b"\n"):
            problems.add(number, f"longer than {LARGEST_RECORD >> 20} MB; skipped.")
            while (rest := file.readline(LARGEST_RECORD)) and not rest.endswith(b"\n"):
                pass
        elif line.strip():
            value = json_or_none(line)
            if isinstance(value, dict):
                yield value
            else:
                problems.add(number, "not a JSON object; skipped.")


def read_objects_or_one(file: IO[bytes], problems: Problems) -> Iterator[Object]:
    """Yield the JSON objects of a file with one on each line, or the only one, written over all lines.

    Raises `UnreadableSession`.
    """
    first = _first_line(file)
    if isinstance(json_or_none(first), dict) or not first.lstrip().startswith(b"{"):
        yield from read_objects(file, problems)
    else:
        value = whole_json(file)
        yield from (value,) if isinstance(value, dict) else ()


def whole_json(file: IO[bytes]) -> Json:
    """Return a file's JSON value. Raises `UnreadableSession`."""
    return whole_json_of(_read_whole(file))


def whole_json_of(content: bytes) -> Json:
    """Return the JSON value that a file's content is. Raises `UnreadableSession`."""
    try:
        return _decode(content)
    except RecursionError as error:
        raise UnreadableSession("The JSON is nested too deeply.") from error
    except ValueError as error:
        last = 1 + content.count(b"\n")
        raise UnreadableSession(f"line {last}: the JSON is broken or cut off: {error}.") from error


def _read_whole(file: IO[bytes], most: int = 4 * LARGEST_RECORD) -> bytes:
    size = file.seek(0, SEEK_END)
    file.seek(0)
    if size > most:
        raise UnreadableSession(
            f"The file is larger than {most >> 20} MB. Export fewer sessions into one file."
        )
    return file.read()
