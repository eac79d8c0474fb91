"""Read JSON and JSON lines with the line of every value, within the same limits as YAML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from evaluators.model import Json
from scenarios.formats.positions import Location, PositionedDocument, Positions, line_of
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.text_decoding import (
    MAX_DEPTH,
    bad_character,
    decode_document,
    decoding_error,
    duplicate_key,
    empty,
    too_deep,
)

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
        raise empty(file)
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
