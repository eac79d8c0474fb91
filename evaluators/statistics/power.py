"""Compute what a comparison of pass rates can show: its power, the change it detects, and the trials that takes.

The power is that of the normal distribution with the variance that permuting trials within scenarios expects: where it
says 80 %, the tests themselves find 72 to 86 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import sqrt
from statistics import NormalDist, fmean
from typing import NamedTuple

from evaluators.statistics.significance import Arms, boschloo_p, within_scenario_p

POWER = 0.8
"""The share of comparisons that find a change of the detectable size."""
RELIABLE = 1.5
"""Advice is for this many times the smallest effect: a change of the smallest effect itself is observed to be smaller
half of the time, however many trials there are."""
_NORMAL = NormalDist()


class RateTestLevel(NamedTuple):
    """When a test of pass rates calls a change one."""

    alpha: float
    """Its p, two-sided, must be below this."""
    smallest: float = 0.0
    """The observed change must be at least this large, 0 to 1."""


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


def compute_power(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], drop: float, level: RateTestLevel
) -> float:
    """Return in which share of comparisons a drop of the mean pass rate is found, 0 to 1.

    Takes each scenario's true rate before and its trials before and after. Every scenario loses equally, down to 0.
    """
    return _power(rates, _lower(rates, drop), before, after, level)


def _power(
    rates: Sequence[float],
    later: Sequence[float],
    before: Sequence[int],
    after: Sequence[int],
    level: RateTestLevel,
) -> float:
    """Return the power from the variances of the difference, as it is and as permuting expects it.

    Of M = np + mq expected passes, n of the N trials before, permuting has the variance M(N − M) N / (N − 1) / (nm) / N
    (hypergeometric); its expectation is used.
    """
    true = permuted = 0.0
    for p, q, n, m in zip(rates, later, before, after, strict=True):
        passes, trials = n * p + m * q, n + m
        noise = n * p * (1 - p) + m * q * (1 - q)
        true += p * (1 - p) / n + q * (1 - q) / m
        permuted += (passes * (trials - passes) - noise) / ((trials - 1) * n * m)
    fall = fmean(rates) - fmean(later)
    needed = max(_NORMAL.inv_cdf(1 - level.alpha / 2) * sqrt(permuted) / len(rates), level.smallest)
    error = sqrt(true) / len(rates)
    return _NORMAL.cdf((fall - needed) / error) if error else float(fall >= needed)


def can_reach(before: Sequence[int], after: Sequence[int], level: RateTestLevel) -> bool:
    """Return whether the loss of every pass would be found, if every trial before had passed."""
    # Scenarios that lose every trial; with them, any number of trials reaches a verdict.
    lost = [Arms(n, n, 0, m) for n, m in zip(before, after, strict=True)][:8]
    if not lost:
        return False
    p = boschloo_p(lost[0]) if len(lost) == 1 else within_scenario_p(lost, mid=True)
    return p < level.alpha


def most_power(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], level: RateTestLevel
) -> float:
    """Return in which share of comparisons the loss of every pass is found; 0 where nothing they show is a change."""
    if not can_reach(before, after, level):
        return 0.0
    return _power(_with_room(rates), [0.0] * len(rates), before, after, level)


def find_detectable_drop(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], level: RateTestLevel
) -> float | None:
    """Return the smallest change of the mean pass rate that is found with `POWER`; None where none is.

    It is a drop; of low rates, which can't drop much, a rise.
    """
    return _detectable(tuple(rates), tuple(before), tuple(after), level)


@lru_cache(maxsize=1024)
def _detectable(
    rates: tuple[float, ...], before: tuple[int, ...], after: tuple[int, ...], level: RateTestLevel
) -> float | None:
    if most_power(rates, before, after, level) < POWER:
        return None
    olds = _with_room(rates)
    low, high = 0.0, fmean(olds)
    # Halvings of the interval in which the detectable change is sought.
    for _ in range(12):
        middle = (low + high) / 2
        is_enough = compute_power(olds, before, after, middle, level) >= POWER
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _with_room(rates: Sequence[float]) -> Sequence[float]:
    """Return the rates, or the rates of failing where the test has more room for a rise."""
    return [1 - rate for rate in rates] if fmean(rates) < 0.5 else rates


def is_found(
    rates: Sequence[float], before: Sequence[int], after: Sequence[int], drop: float, level: RateTestLevel
) -> bool:
    """Return whether a drop of the mean pass rate is found with `POWER`. Takes what `compute_power` does."""
    return compute_power(rates, before, after, drop, level) >= POWER


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
