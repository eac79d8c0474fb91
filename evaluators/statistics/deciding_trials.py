"""Compute how many more trials decide a comparison if they go on like the present ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from evaluators.statistics.measure_change import MeasureRule, Pairs, Sample
from evaluators.statistics.permutation_power import (
    RateTestLevel,
    TrialCounts,
    is_lower_by_boschloo,
    lattice_length,
)
from evaluators.statistics.power import smallest_enough
from evaluators.statistics.significance import Arms

MOST_DECIDING = 20
"""More trials of each scenario than this are another run."""
_LONGEST_LATTICE = 20_000
"""The most possible sums of differences for which it is computed; above it, testing often takes too long."""


def deciding_trials(rule: MeasureRule, pairs: Pairs, is_change: Callable[[Pairs], bool]) -> int | None:
    """Return how many more trials of each scenario in both runs make `is_change` true of results like the present ones.

    Passes are rounded so that all scenarios together keep their rate. None where `MOST_DECIDING` don't.
    """
    most = [(old.n + MOST_DECIDING, new.n + MOST_DECIDING) for old, new in pairs]
    if lattice_length(TrialCounts(tuple(n for n, _ in most), tuple(n for _, n in most))) > _LONGEST_LATTICE:
        return None
    return smallest_enough(lambda more: is_change(_continue_alike(rule, pairs, more)), MOST_DECIDING)


def _continue_alike(rule: MeasureRule, pairs: Pairs, more: int) -> Pairs:
    sides = ([old for old, _ in pairs], [new for _, new in pairs])
    if not rule.is_outcome:
        old, new = ([_longer(each, more) for each in side] for side in sides)
        return list(zip(old, new, strict=True))
    old, new = (_round_passes(side, more) for side in sides)
    return list(zip(old, new, strict=True))


def _longer(sample: Sample, more: int) -> Sample:
    n = sample.n + more
    # The same variance between trials.
    return Sample(n, sample.mean, sample.m2 * (n - 1) / max(1, sample.n - 1))


def _round_passes(side: list[Sample], more: int) -> list[Sample]:
    """Return samples of passes with so many more trials, whole passes of which keep the sum of all."""
    sums = [0, *(round(each + 1e-9) for each in accumulate(one.mean * more for one in side))]
    samples = []
    for one, start, end in zip(side, sums, sums[1:], strict=False):
        passes = round(one.mean * one.n) + min(more, end - start)
        samples.append(Sample(one.n + more, passes / (one.n + more)))
    return samples


def has_broken_scenario(pairs: Pairs, alpha: float, smallest: float) -> bool:
    """Return whether the scenario that moved most, and those with equal results, would change in the table of all.

    `alpha` is the table's level (Benjamini and Hochberg).
    """
    old, new = max(pairs, key=lambda pair: abs(pair[1].mean - pair[0].mean))
    level = RateTestLevel(alpha * list(pairs).count((old, new)) / len(pairs), smallest)
    before, after = round(old.mean * old.n), round(new.mean * new.n)
    if after > before * new.n / old.n:
        before, after = old.n - before, new.n - after
    return is_lower_by_boschloo(Arms(before, old.n, after, new.n), level)
