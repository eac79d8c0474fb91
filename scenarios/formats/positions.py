"""Map the values of a document to lines, so every problem can name its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluators.model import Json
from scenarios.formats.problems import Problem

Location = tuple[str | int, ...]
"""Keys and indexes from the root of a document to a value."""


@dataclass(frozen=True)
class Positions:
    """Lines by location; merged and aliased values have the line of their nearest known parent."""

    lines: Mapping[Location, int] = field(default_factory=dict)

    def line(self, location: Location) -> int:
        """Return the line of a value or of its nearest known parent, from 1."""
        for end in range(len(location), -1, -1):
            if (line := self.lines.get(location[:end])) is not None:
                return line
        return 1


@dataclass(frozen=True)
class PositionedDocument:
    """One decoded file with the lines of its values."""

    file: str
    value: Json
    positions: Positions

    def problem(self, at: Location, what: str, *, fix: str, id: str, lint: bool = False) -> Problem:
        """Return a problem at a location of this document."""
        return Problem(
            file=self.file,
            line=self.positions.line(at),
            where=line_of(at),
            what=what,
            fix=fix,
            id=id,
            lint=lint,
        )


def line_of(location: Location) -> str:
    """Return a location as text: `evaluation.gates[2].type`."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
