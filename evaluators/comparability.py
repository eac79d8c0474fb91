"""Which results of two runs can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Reasons = tuple[str, ...]
"""Which of task, gates, judge and rubric changed; nothing where results can be compared."""


class Standard(NamedTuple):
    """What a scenario asks and how it judges, as hashes; empty where it has no such part."""

    task: str
    gates: str
    judge: str = ""
    rubric: str = ""


def comparability(before: Standard, after: Standard) -> Reasons:
    """Return why a scenario's results before and after cannot be compared; nothing where they can."""
    pairs = zip(Standard._fields, before, after, strict=True)
    return tuple(part for part, old, new in pairs if old != new)


def not_comparable(before: Mapping[str, Standard], after: Mapping[str, Standard]) -> dict[str, Reasons]:
    """Return the reasons for each scenario that both have and that cannot be compared, by key."""
    reasons = {key: comparability(before[key], after[key]) for key in after if key in before}
    return {key: found for key, found in reasons.items() if found}


def named(reasons: Mapping[str, Reasons]) -> str:
    """Return the scenarios that cannot be compared with what changed, such as `…: create (gates)`; empty without any."""
    each = ", ".join(f"{key} ({' and '.join(found)})" for key, found in reasons.items())
    return f"{_count(len(reasons))}, changed: {each}" if each else ""


def sentence(reasons: Sequence[Reasons]) -> str:
    """Return how many scenarios cannot be compared and why, such as `3 scenarios not comparable: gates changed`."""
    if not reasons:
        return ""
    counts = Counter(" and ".join(each) + " changed" for each in reasons).most_common()
    why = ", ".join(f"{words} ({n})" if len(counts) > 1 else words for words, n in counts)
    return f"{_count(len(reasons))}: {why}"


def _count(n: int) -> str:
    return f"{n} scenario{'s' * (n != 1)} not comparable"
