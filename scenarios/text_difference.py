"""What differs between two texts, line by line, within limits of time and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MOST_LINES = 1_000
"""Lines of a text that is compared with another: the time that this takes may grow with their product."""
MOST_SHOWN = 200
"""Lines of a difference that are shown."""
AROUND = 3
"""Lines shown before and after each change."""
MOST_PAIRS = 4_000
"""Pairs of equal lines, one of either text, past which common lines are no place to begin a match at."""
COMMON = 100
"""Pairs that a common line makes."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference, with its numbers before and after; None where it is not there."""

    before: int | None
    after: int | None
    text: str

    @property
    def look(self) -> str:
        """`added`, `removed`, or nothing for a line that stayed."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else ""


Hunk = tuple[DiffLine, ...]


@dataclass(frozen=True)
class TextDifference:
    """What differs: changes with the lines around them, and how many lines came and went."""

    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    is_cut: bool
    """Whether more lines belong to it than are shown."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; what follows the end of the last one is none."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def text_difference(before: Sequence[str], after: Sequence[str]) -> TextDifference | None:
    """Return what differs between two lists of lines, None where they are longer than what is compared."""
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
    """Return the lines that stand in both texts so often that pairing them all would take seconds."""
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
