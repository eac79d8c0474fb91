"""Mark the runs of a trend from which a measure changed. Alarms come from `evaluators.statistics.line`.

Plain Python, because a page computes it: scipy and ruptures would cost a web process 70 MB and its first page a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import log
from typing import NamedTuple

FEWEST_RUNS = 6
"""Fewest runs in which a change is searched."""
FEWEST_BETWEEN = 2
"""Fewest runs between two changes, so that one unusual run isn't a change."""


class ChangePoint(NamedTuple):
    """A change before the run at a position."""

    at: int
    """Position of the first run after the change."""
    before: float
    """Level from the previous change to this one."""
    after: float
    """Level from this change to the next one."""


def find_changes(values: Sequence[float]) -> tuple[ChangePoint, ...]:
    """Return the changes of a mean over runs, oldest first; none for fewer than six runs.

    The segmentation that minimises squared distances from each segment's mean plus `3 log n` noise variances for each
    change: the optimum that PELT finds (Killick, Fearnhead and Eckley 2012), by dynamic programming (Jackson et al.
    2005). The noise is estimated from successive differences (von Neumann 1941), which a step hardly widens.
    """
    if len(values) < FEWEST_RUNS:
        return ()
    noise = sum((after - before) ** 2 for before, after in pairwise(values)) / (len(values) - 1) / 2
    if not noise:
        return ()
    sums = [0.0, *accumulate(value - values[0] for value in values)]
    ends = [0, *_split(sums, 3 * log(len(values)) * noise), len(values)]
    levels = [values[0] + (sums[end] - sums[start]) / (end - start) for start, end in pairwise(ends)]
    return tuple(ChangePoint(at, *levels[place : place + 2]) for place, at in enumerate(ends[1:-1]))


def _split(sums: Sequence[float], penalty: float) -> list[int]:
    """Return where the cheapest segmentation splits; `sums` begin with 0."""
    last = len(sums) - 1
    # The squared values themselves are the same in every segmentation, so they are left out.
    best, previous = [0.0] + [float("inf")] * last, [0] * (last + 1)
    for end in range(FEWEST_BETWEEN, last + 1):
        total = sums[end]
        best[end], previous[end] = min(
            (best[start] - (total - sums[start]) ** 2 / (end - start) + penalty, start)
            for start in range(end - FEWEST_BETWEEN + 1)
        )
    splits = []
    at = previous[last]
    while at:
        splits.append(at)
        at = previous[at]
    return splits[::-1]
