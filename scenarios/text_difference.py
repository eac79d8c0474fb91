"""Compare two texts line by line, within limits of time and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_LINES = 1_000
"""The most lines of a compared text, because the time can grow with the product of both."""
MOST_SHOWN = 200
"""The most shown lines of a difference."""
AROUND = 3
"""Lines shown before and after each change."""
MOST_PAIRS = 4_000
"""The number of equal line pairs above which common lines do not start a match."""
COMMON = 100
"""The number of pairs that makes a line common."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference with its numbers before and after; None if absent."""

    before: int | None
    after: int | None
    text: str

    @property
    def look(self) -> str:
        """`added`, `removed`, or nothing for an unchanged line."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else ""


Hunk = tuple[DiffLine, ...]


@dataclass(frozen=True)
class TextDifference:
    """Changes with surrounding lines, and the numbers of added and removed lines."""

    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    is_cut: bool
    """Whether lines are missing because of the limit."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without an empty line at the end."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def text_difference(before: Sequence[str], after: Sequence[str]) -> TextDifference | None:
    """Compare two lists of lines; return None if they are too long."""
    if before and after and max(len(before), len(after)) > MOST_LINES:
        return None
    common = _common(before, after)
    groups = SequenceMatcher(common.__contains__, before, after).get_grouped_opcodes(AROUND)
    hunks = [tuple(_lines(group, before, after)) for group in groups]
    looks = [line.look for hunk in hunks for line in hunk]
    return TextDifference(
        tuple(_first(hunks, MOST_SHOWN)),
        looks.count("added"),
        looks.count("removed"),
        len(looks) > MOST_SHOWN,
    )


def _common(before: Sequence[str], after: Sequence[str]) -> frozenset[str]:
    """Return lines so frequent in both texts that pairing them would take seconds."""
    others = Counter(after)
    pairs = {line: count * others[line] for line, count in Counter(before).items()}
    if sum(pairs.values()) <= MOST_PAIRS:
        return frozenset()
    return frozenset(line for line, count in pairs.items() if count > COMMON)


def _lines(
    group: Sequence[tuple[str, int, int, int, int]], before: Sequence[str], after: Sequence[str]
) -> Iterator[DiffLine]:
    for kind, from_before, to_before, from_after, to_after in group:
        if kind == "equal":
            for at in range(to_before - from_before):
                yield DiffLine(from_before + at + 1, from_after + at + 1, before[from_before + at])
        else:
            yield from (DiffLine(at + 1, None, before[at]) for at in range(from_before, to_before))
            yield from (DiffLine(None, at + 1, after[at]) for at in range(from_after, to_after))


def _first(hunks: Sequence[Hunk], lines: int) -> Iterator[Hunk]:
    for hunk in hunks:
        if lines <= 0:
            return
        yield hunk[:lines]
        lines -= len(hunk)
