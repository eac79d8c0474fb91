"""Align the commands of two trials and find where they part ways.

A command is compared by its subcommand and the set of its flags; the flags' values and their order don't matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from evalhub.lib.limits import LONGEST_NAME
from evaluators.tool_use.shell import split_commands

MOST_ALIGNED = 200
"""The most commands of a trial that are aligned: the time grows with the product of both numbers."""
_SAME, _RELATED, _OTHER, _GAP = 4, 1, -1, -1

Pair = tuple[int | None, int | None]
"""The indexes of two aligned commands; None where a trial has no counterpart."""


@lru_cache(maxsize=16_384)
def command_key(line: str, subcommand: str = "") -> str:
    """Return a command's subcommand and its sorted flags, such as `deploy --env --force`.

    Without a subcommand it is the program and its first argument. For a tool call, the arguments' names are the flags.
    """
    name, _, arguments = line.partition(" ")
    if arguments.startswith("{"):
        return _cut(" ".join([subcommand or name, *_argument_names(arguments)]))
    # Characters of a line that are searched for flags.
    words = next((part.words for part in split_commands(line[:4_000]) if part.words), (name,))
    flags = sorted({word.partition("=")[0] for word in words[1:] if _is_flag(word)} - {subcommand})
    return _cut(" ".join([subcommand or _program(words), *flags]))


def _program(words: Sequence[str]) -> str:
    return " ".join([words[0], *[word for word in words[1:] if not _is_flag(word)][:1]])


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and not word.isspace()


def _argument_names(arguments: str) -> list[str]:
    try:
        return sorted(msgspec.json.decode(arguments, type=dict[str, msgspec.Raw]))
    except msgspec.DecodeError:
        return []


def _cut(key: str) -> str:
    return key if len(key) <= LONGEST_NAME else f"{key[: LONGEST_NAME - 1]}…"


def align(before: Sequence[str], after: Sequence[str]) -> list[Pair]:
    """Return both trials' commands in order, aligned by their keys.

    Commands before the first and after the last difference pair up as they are. Between them it is the alignment of
    Needleman and Wunsch (1970): equal keys score most, then keys of one subcommand.
    """
    old, new = before[:MOST_ALIGNED], after[:MOST_ALIGNED]
    start = common_start(old, new)
    end = common_start(old[start:][::-1], new[start:][::-1])
    middle = _needleman_wunsch(old[start : len(old) - end], new[start : len(new) - end])
    return [
        *((at, at) for at in range(start)),
        *((_move(one, start), _move(other, start)) for one, other in middle),
        *((len(old) - end + at, len(new) - end + at) for at in range(end)),
    ]


def common_start(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many commands are the same before the first difference."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(before), len(after)))


def _move(index: int | None, by: int) -> int | None:
    return None if index is None else index + by


def _needleman_wunsch(before: Sequence[str], after: Sequence[str]) -> list[Pair]:
    width = len(after) + 1
    best = [[_GAP * column for column in range(width)]]
    for row, old in enumerate(before, 1):
        above, line = best[-1], [_GAP * row]
        for column, new in enumerate(after, 1):
            paired = above[column - 1] + _score(old, new)
            line.append(max(paired, above[column] + _GAP, line[-1] + _GAP))
        best.append(line)
    return _path(best, before, after)


def _path(best: Sequence[Sequence[int]], before: Sequence[str], after: Sequence[str]) -> list[Pair]:
    """Return the pairs of the best alignment, read back from its end; of equal ones that which pairs earliest."""
    row, column = len(before), len(after)
    pairs: list[Pair] = []
    while row or column:
        here = best[row][column]
        if column and here == best[row][column - 1] + _GAP:
            column -= 1
            pairs.append((None, column))
        elif row and here == best[row - 1][column] + _GAP:
            row -= 1
            pairs.append((row, None))
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    return pairs[::-1]


def _score(old: str, new: str) -> int:
    if old == new:
        return _SAME
    return _RELATED if old.partition(" ")[0] == new.partition(" ")[0] else _OTHER


class Divergence(NamedTuple):
    """The first place where two trials' commands differ."""

    number: int
    """Of the aligned pair, from 1."""
    before: str
    """Key of the first trial's command; empty if it has none there."""
    after: str

    @property
    def label(self) -> str:
        """The second trial's command, else what it lacks."""
        return self.after or f"no {self.before}"


def first_divergence(before: Sequence[str], after: Sequence[str]) -> Divergence | None:
    """Return where two trials' commands part ways; None if all are the same."""
    if tuple(before) == tuple(after):
        return None
    pairs = align(before, after)
    for number, (one, other) in enumerate(pairs, 1):
        old = "" if one is None else before[one]
        new = "" if other is None else after[other]
        if old != new:
            return Divergence(number, old, new)
    return None


def closest_pair(before: Sequence[Sequence[str]], after: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """Return the indexes of the two trials that part ways last, the first of equals; None without trials.

    Their first difference says most: everything before it was the same.
    """
    places = [
        (common_start(old, new), -at, -to) for at, old in enumerate(before) for to, new in enumerate(after)
    ]
    if not places:
        return None
    _, at, to = max(places)
    return -at, -to


def most_common(divergences: Iterable[Divergence]) -> tuple[str, int]:
    """Return the label that most divergences have, and how many; empty without any."""
    counted = Counter(each.label for each in divergences).most_common(1)
    return counted[0] if counted else ("", 0)
