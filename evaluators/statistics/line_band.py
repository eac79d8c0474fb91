"""Where the next run of a line is expected, from the runs before it."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log
from statistics import fmean, variance
from typing import NamedTuple

FEWEST_RUNS = 3
"""Runs before a line has a band."""
MOST_EXACT = 400
"""Trials of the next run for which its results are enumerated; more are scaled down to it."""
TAIL = 0.025


class Band(NamedTuple):
    """The ends of an interval of pass rates, from 0 to 1."""

    low: float
    high: float


def expected_band(earlier: Sequence[tuple[float, int]], trials: int) -> Band | None:
    """Return where 95 % of next runs with so many trials are expected; None for fewer than three runs before.

    `earlier` are passed trials and trials of the line's runs. The next run's passes are beta-binomial: its chance lies
    around the line's pass rate as far as runs vary beside what their trials explain (method of moments, DerSimonian and
    Laird 1986), and as far as the rate itself is uncertain.
    """
    counted = [(passed, n) for passed, n in earlier if n]
    if len(counted) < FEWEST_RUNS or not trials:
        return None
    total = sum(n for _, n in counted)
    # Half a pass and half a failure more, so that a line without failures has a width.
    rate = (sum(passed for passed, _ in counted) + 0.5) / (total + 1)
    binomial = rate * (1 - rate)
    between = max(0.0, variance(p / n for p, n in counted) - fmean(binomial / n for _, n in counted))
    spread = between * (1 + 1 / len(counted)) + binomial / total
    size = max(1.0, binomial / spread - 1)
    n = min(trials, MOST_EXACT)
    low, high = _quantiles(n, rate * size, (1 - rate) * size)
    return Band(low / n, high / n)


def _quantiles(n: int, a: float, b: float) -> tuple[int, int]:
    """Return the ends of the smallest numbers of passes that leave at most `TAIL` on each side."""
    below, low, high = 0.0, 0, n
    # Smaller numbers are passed over in turn; the chance of each follows from the one before.
    chance = exp(lgamma(a + b) - lgamma(a + b + n) + lgamma(b + n) - lgamma(b))
    logarithm = log(chance) if chance else lgamma(a + b) - lgamma(a + b + n) + lgamma(b + n) - lgamma(b)
    for k in range(n + 1):
        chance = exp(logarithm)
        if below <= TAIL:
            low = k
        below += chance
        if below >= 1 - TAIL:
            high = k
            break
        logarithm += log((n - k) * (k + a)) - log((k + 1) * (n - k - 1 + b)) if k < n else 0.0
    return low, high
