"""Decode uploaded text within the limits of all formats, and read TOML and JSON with the line of every value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from evaluators.model import Json
from evaluators.transcripts.reading import decode_text
from scenarios.formats.parsed import (
    Location,
    PositionedDocument,
    Positions,
    Problem,
    ScenarioFileError,
    line_of,
)

MAX_BYTES = 2 * 1024 * 1024
"""The largest document that is decoded; fixture files may be larger."""
EMPTY = "format/empty-file"
"""The problem of a file without a value; beside other files it is ignored."""
MAX_DEPTH = 40
"""The deepest nesting of lists and mappings; libyaml's only limit is the stack."""


def decoding_error(file: str, line: int, what: str, *, fix: str, id: str) -> ScenarioFileError:
    """Return the error for a file that cannot be decoded."""
    return ScenarioFileError([Problem(file=file, line=line, where="", what=what, fix=fix, id=id)])


def decode_document(content: bytes, file: str) -> str:
    """Return the text of a document. Raises `ScenarioFileError` if it is empty, too large or not UTF-8 or UTF-16."""
    if len(content) > MAX_BYTES:
        raise decoding_error(
            file,
            1,
            f"The file has {len(content):,} bytes; the limit is {MAX_BYTES:,}.",
            fix="Split it into several files, or move large inputs into a fixture.",
            id="format/too-large",
        )
    try:
        text = decode_text(content)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise decoding_error(
            file,
            line,
            "The file is not UTF-8 or UTF-16 text.",
            fix="Save it as UTF-8.",
            id="format/not-text",
        ) from error
    if not text.strip():
        raise make_empty_error(file)
    return text


def make_empty_error(file: str) -> ScenarioFileError:
    """Return the error for an empty file."""
    return decoding_error(
        file,
        1,
        "The file is empty.",
        fix="Write a scenario into it, or remove the file.",
        id=EMPTY,
    )


def too_deep(file: str, line: int) -> ScenarioFileError:
    """Return the error for nesting that could exhaust the stack."""
    return decoding_error(
        file,
        line,
        f"Lists and mappings are nested more than {MAX_DEPTH} deep.",
        fix="Flatten the document.",
        id="format/too-deep",
    )


def bad_character(file: str, line: int) -> ScenarioFileError:
    """Return the error for a character that databases and terminals reject."""
    return decoding_error(
        file,
        line,
        "The text contains a NUL or half a surrogate pair.",
        fix="Remove the character; put binary content into a fixture.",
        id="format/bad-character",
    )


def duplicate_key(file: str, line: int, at: str, key: str) -> Problem:
    """Return the problem of a repeated key."""
    return Problem(
        file=file,
        line=line,
        where=at,
        what=f"Duplicate key '{key}' in this mapping.",
        fix="Remove one of them.",
        id="format/duplicate-key",
    )


# Nothing is tried again: on a line of blanks that would take cubic time.
_TABLE = re.compile(r"\s*+\[++([^\]\n]++)\]")
_KEY = re.compile(r"""\s*([A-Za-z0-9_.-]+|"[^"\n]*"|'[^'\n]*')\s*=""")
_PART = r"""(?<![A-Za-z0-9_\\-])(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
# For each key, tomllib walks all parts of its own and its table's name.
_DEEP = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}")


def read_toml(content: bytes, file: str) -> PositionedDocument:
    """Decode TOML. Raises `ScenarioFileError` with the line of the error."""
    # Imported here because most suites have no TOML.
    import tomllib

    text = decode_document(content, file)
    if deep := _DEEP.search(text):
        raise too_deep(file, text.count("\n", 0, deep.start()) + 1)
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise decoding_error(
            file,
            int(line[1]) if line else 1,
            "This is not TOML: " + str(error).rstrip(".") + ".",
            fix="Fix the syntax there.",
            id="format/not-toml",
        ) from error
    return PositionedDocument(file=file, value=value, positions=Positions(_lines(text)))


def _lines(text: str) -> dict[Location, int]:
    """Return the line of each table and key; multi-line values have the line of their key."""
    table: Location = ()
    lines: dict[Location, int] = {(): 1}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _TABLE.match(line):
            table = _parts(match[1])
            lines.setdefault(table, number)
        elif match := _KEY.match(line):
            lines.setdefault((*table, *_parts(match[1])), number)
    return lines


def _parts(name: str) -> Location:
    return tuple(part.strip().strip("\"'") for part in name.split("."))


_SYMBOL = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')


def read_json(content: bytes, file: str) -> PositionedDocument:
    """Decode one JSON document. Raises `ScenarioFileError` with the line of the error."""
    text = decode_document(content, file)
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise _not_json(file, error.lineno, f"{error.msg} in column {error.colno}") from error
    except RecursionError as error:
        raise too_deep(file, 1) from error
    except ValueError as error:
        raise _not_json(file, 1, str(error)) from error
    if value is None:
        raise make_empty_error(file)
    positions, problems = _Walk(file).walk(text)
    if problems:
        raise ScenarioFileError(problems)
    return PositionedDocument(file=file, value=value, positions=positions)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON value")


def _not_json(file: str, line: int, reason: str) -> ScenarioFileError:
    return decoding_error(
        file, line, f"This is not JSON: {reason}.", fix="Fix the syntax there.", id="format/not-json"
    )


@dataclass
class _Level:
    """One open list or object, with the key or index of its next value."""

    part: str | int | None
    seen: set[str] = field(default_factory=set)


@dataclass
class _Walk:
    """Collects line numbers from the symbols of valid JSON."""

    file: str
    levels: list[_Level] = field(default_factory=list)
    lines: dict[Location, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def walk(self, text: str) -> tuple[Positions, list[Problem]]:
        for symbol, line in _symbols(text):
            if symbol in "]}":
                self.levels.pop()
            elif symbol == ",":
                self._next()
            elif symbol != ":":
                self._value(symbol, line)
        return Positions(self.lines), self.problems

    def _next(self) -> None:
        level = self.levels[-1]
        level.part = level.part + 1 if isinstance(level.part, int) else None

    def _value(self, symbol: str, line: int) -> None:
        text = json.loads(symbol) if symbol.startswith('"') else ""
        if "\0" in text or re.search("[\ud800-\udfff]", text):
            raise bad_character(self.file, line)
        if self.levels and self.levels[-1].part is None:
            self._key(text, line)
            return
        self.lines.setdefault(self._location(), line)
        if symbol in "[{":
            self._open(symbol, line)

    def _key(self, key: str, line: int) -> None:
        level = self.levels[-1]
        level.part = key
        if key in level.seen:
            self.problems.append(duplicate_key(self.file, line, line_of(self._location()), key))
        level.seen.add(key)
        self.lines.setdefault(self._location(), line)

    def _open(self, symbol: str, line: int) -> None:
        if len(self.levels) >= MAX_DEPTH:
            raise too_deep(self.file, line)
        self.levels.append(_Level(part=None if symbol == "{" else 0))

    def _location(self) -> Location:
        return tuple(level.part for level in self.levels if level.part is not None)


def _symbols(text: str) -> Iterator[tuple[str, int]]:
    line, end = 1, 0
    for match in _SYMBOL.finditer(text):
        line += text.count("\n", end, match.start())
        end = match.start()
        yield match[0], line


def read_jsonl(content: bytes, file: str) -> PositionedDocument:
    """Decode JSON lines as a list. Raises `ScenarioFileError` with every invalid line."""
    values: list[Json] = []
    lines: dict[Location, int] = {(): 1}
    problems: list[Problem] = []
    for number, text in enumerate(decode_document(content, file).splitlines(), start=1):
        if not text.strip():
            continue
        location: Location = (len(values),)
        try:
            values.append(read_json(text.encode(), file).value)
        except ScenarioFileError as error:
            problems += [replace(problem, line=number, where=line_of(location)) for problem in error.problems]
            values.append(None)
        lines[location] = number
    if problems:
        raise ScenarioFileError(problems)
    return PositionedDocument(file=file, value=values, positions=Positions(lines))
