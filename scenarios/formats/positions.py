"""Where the values of a document stand in its text, so that every problem can name its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluators.model import Json
from scenarios.formats.problems import Problem

Location = tuple[str | int, ...]
"""Keys and indexes from the root of a document to a value."""


@dataclass(frozen=True)
class Positions:
    """Lines by location; what a merge or an alias brings in has the line of its nearest known parent."""

    lines: Mapping[Location, int] = field(default_factory=dict)

    def line(self, location: Location) -> int:
        """Return the line, from 1, of a value or of what holds it."""
        for end in range(len(location), -1, -1):
            if (found := self.lines.get(location[:end])) is not None:
                return found
        return 1


@dataclass(frozen=True)
class Document:
    """One file as decoded, with the lines of its values."""

    file: str
    value: Json
    positions: Positions

    def problem(self, at: Location, what: str, *, fix: str, id: str, lint: bool = False) -> Problem:
        """Say what is wrong at a location of this document."""
        return Problem(
            file=self.file,
            line=self.positions.line(at),
            where=where(at),
            what=what,
            fix=fix,
            id=id,
            lint=lint,
        )


def where(location: Location) -> str:
    """Return a location as people write it: `evaluation.gates[2].type`."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
