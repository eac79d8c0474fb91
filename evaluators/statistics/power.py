"""Compute what a comparison of pass rates can show: its power, the change it detects, and the trials that takes.

The tests are those of the verdicts: trials permuted within each scenario (mid-p), Boschloo's for a single scenario.
Their power is exact for a single scenario, drawn (fixed seed) for few trials, and for many that of the normal
distribution with the permutations' expected variance, which differs from the drawn one by at most 2 points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt
from statistics import NormalDist, fmean

from evaluators.statistics.permutation_power import (
    RateTestLevel,
    TrialCounts,
    boschloo_power,
    found_share,
    lattice_length,
)
from evaluators.statistics.significance import Arms, Tail, boschloo_p, within_scenario_p

POWER = 0.8
"""The share of comparisons that find a change of the detectable size."""
RELIABLE = 1.5
"""Advice is for this many times the smallest effect: a change of the smallest effect itself is observed to be smaller
half of the time, however many trials there are."""
_LONGEST_LATTICE = 128
"""The most possible sums of a design whose results are drawn: more take too long, and are nearly normal."""
_MOST_RESULTS = 2_500
"""The most results of a single scenario that are counted."""
_ENOUGH_SCENARIOS = 8
"""Scenarios that lose every trial; with them, any number of trials reaches a verdict."""
_UNSURE = (0.55, 0.97)
"""Between them, the normal distribution's power doesn't say on which side of `POWER` the test's own is."""
_STEPS = 12
"""Halvings of the interval in which the detectable change is sought."""
_CORRECTIONS = 2
"""How often the normal distribution's detectable change is corrected by the test's own power."""
_NORMAL = NormalDist()


def expected_rates(passes: Sequence[float], trials: Sequence[int]) -> list[float]:
    """Return the true pass rates that such results come from, as a whole: few trials scatter them too much.

    The scenarios' rates are drawn together until they vary as much as their trials don't explain (constrained
    empirical Bayes, Louis 1984). Never 0 or 1 throughout, because no scenario is certain.
    """
    total, count = sum(passes), sum(trials)
    common = (total + 0.5) / (count + 1)
    if len(passes) == 1:
        return [common]
    rates = [passed / n for passed, n in zip(passes, trials, strict=True)]
    repeated = [(rate, n) for rate, n in zip(rates, trials, strict=True) if n > 1]
    if not repeated:
        # Single trials don't show what varies between scenarios.
        return [common] * len(rates)
    within = fmean(rate * (1 - rate) / (n - 1) for rate, n in repeated) + 0.5 / count / fmean(trials)
    varied = fmean((rate - common) ** 2 for rate in rates) * len(rates) / (len(rates) - 1)
    factor = sqrt(max(0.0, 1 - within / varied)) if varied else 0.0
    return [common + factor * (rate - common) for rate in rates]


def power(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], drop: float, level: RateTestLevel
) -> float:
    """Return in which share of comparisons a drop of the mean pass rate is found, 0 to 1.

    Takes each scenario's true rate before and its trials before and after. Every scenario loses equally, down to 0.
    """
    counts, olds = _order(rates, before, after)
    return _cached_share(olds, tuple(_lower(olds, drop)), counts, level)


def _order(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int]
) -> tuple[TrialCounts, tuple[float, ...]]:
    """Return equal designs as equal values, whatever the order of their scenarios."""
    order = sorted(zip(before, after, (round(rate, 3) for rate in rates), strict=True))
    counts = TrialCounts(tuple(n for n, _, _ in order), tuple(n for _, n, _ in order))
    return counts, tuple(rate for _, _, rate in order)


def _lower(rates: Sequence[float], drop: float) -> list[float]:
    """Return the rates after each lost the same, down to 0, so that their mean is lower by `drop`."""
    left, lost = drop * len(rates), 0.0
    for place, rate in enumerate(sorted(rates)):
        loss = left / (len(rates) - place)
        if rate >= loss:
            lost = loss
            break
        left, lost = left - rate, rate
    return [max(0.0, rate - lost) for rate in rates]


@lru_cache(maxsize=4096)
def _cached_share(
    rates: tuple[float, ...], later: tuple[float, ...], counts: TrialCounts, level: RateTestLevel
) -> float:
    if len(rates) == 1 and (counts.before[0] + 1) * (counts.after[0] + 1) <= _MOST_RESULTS:
        return boschloo_power(rates[0], later[0], counts.before[0], counts.after[0], level)
    if lattice_length(counts) <= _LONGEST_LATTICE:
        return found_share(rates, later, counts, level)
    return _normal_power(rates, later, counts, level)


def _normal_power(
    rates: Sequence[float], later: Sequence[float], counts: TrialCounts, level: RateTestLevel
) -> float:
    """Return the power from the variances of the difference, as it is and as permuting expects it.

    Of M = np + mq expected passes, n of the N trials before, permuting has the variance M(N − M) N / (N − 1) / (nm) / N
    (hypergeometric); its expectation is used.
    """
    true = permuted = 0.0
    for p, q, n, m in zip(rates, later, counts.before, counts.after, strict=True):
        passes, trials = n * p + m * q, n + m
        noise = n * p * (1 - p) + m * q * (1 - q)
        true += p * (1 - p) / n + q * (1 - q) / m
        permuted += (passes * (trials - passes) - noise) / ((trials - 1) * n * m)
    fall = fmean(rates) - fmean(later)
    quantile = _NORMAL.inv_cdf(1 - level.alpha / (1 if level.one_sided else 2))
    needed = max(quantile * sqrt(permuted) / len(rates), level.smallest)
    error = sqrt(true) / len(rates)
    return _NORMAL.cdf((fall - needed) / error) if error else float(fall >= needed)


def can_reach(before: Sequence[int], after: Sequence[int], level: RateTestLevel) -> bool:
    """Return whether the loss of every pass would be found, if every trial before had passed."""
    lost = [Arms(n, n, 0, m) for n, m in zip(before, after, strict=True)][:_ENOUGH_SCENARIOS]
    if not lost:
        return False
    tail: Tail = "lower" if level.one_sided else "both"
    p = boschloo_p(lost[0], tail) if len(lost) == 1 else within_scenario_p(lost, tail, mid=True)
    return p < level.alpha


def most_power(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], level: RateTestLevel
) -> float:
    """Return in which share of comparisons the loss of every pass is found; 0 where nothing they show is a change."""
    if not can_reach(before, after, level):
        return 0.0
    counts, olds = _order(_with_room(rates, level), before, after)
    none = (0.0,) * len(olds)
    near = _normal_power(olds, none, counts, level)
    return near if near >= _UNSURE[1] else _cached_share(olds, none, counts, level)


def detectable(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], level: RateTestLevel
) -> float | None:
    """Return the smallest change of the mean pass rate that is found with `POWER`; None where none is.

    It is a drop; of low rates, which can't drop much, a rise.
    """
    return _detectable(*_order(rates, before, after), level)


@lru_cache(maxsize=1024)
def _detectable(counts: TrialCounts, rates: tuple[float, ...], level: RateTestLevel) -> float | None:
    if most_power(rates, counts.before, counts.after, level) < POWER:
        return None
    olds = tuple(_with_room(rates, level))
    target = POWER
    for _ in range(_CORRECTIONS):
        drop = _normal_drop(olds, counts, level, target)
        share = _cached_share(olds, tuple(_lower(olds, drop)), counts, level)
        # The normal distribution's own error hardly changes nearby: aim for what it calls the wanted power.
        target = _NORMAL.cdf(_quantile(target) + _quantile(POWER) - _quantile(share))
    return _normal_drop(olds, counts, level, target)


def _quantile(share: float) -> float:
    return _NORMAL.inv_cdf(min(0.999, max(0.001, share)))


def _normal_drop(rates: Sequence[float], counts: TrialCounts, level: RateTestLevel, target: float) -> float:
    low, high = 0.0, fmean(rates)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_found = _normal_power(rates, _lower(rates, middle), counts, level) >= target
        low, high = (low, middle) if is_found else (middle, high)
    return high


def _with_room(rates: Sequence[float], level: RateTestLevel) -> Sequence[float]:
    """Return the rates, or the rates of failing where a two-sided test has more room for a rise."""
    return [1 - rate for rate in rates] if fmean(rates) < 0.5 and not level.one_sided else rates


def is_found(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], drop: float, level: RateTestLevel
) -> bool:
    """Return whether a drop of the mean pass rate is found with `POWER`. Takes what `power` does."""
    counts, olds = _order(rates, before, after)
    later = tuple(_lower(olds, drop))
    near = _normal_power(olds, later, counts, level)
    if not _UNSURE[0] < near < _UNSURE[1]:
        return near >= POWER
    return _cached_share(olds, later, counts, level) >= POWER


def smallest_enough(is_enough: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number from 1 to `most` that is enough, if more of it always is; None if none is."""
    low, high = 0, 1
    while not is_enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
