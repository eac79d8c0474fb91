"""Intervals, quantiles and weighted means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, sqrt
from statistics import NormalDist

from msgspec import Struct

Z_95 = 1.96
"""Standard deviations around the mean that contain 95 % of a normal distribution."""


class Interval(Struct, frozen=True):
    """The confidence interval of a rate, between 0 and 1."""

    lower: float
    upper: float
    center: float
    """The middle of the interval, nearer to one half than the observed rate."""


def wilson(passes: float, total: float, z: float = Z_95) -> Interval:
    """Return the Wilson score interval of a rate; 0 to 1 without trials. Effective sample sizes may be fractions.

    Raises `ValueError` if `passes` is not between 0 and `total`.
    """
    if not 0 <= passes <= total:
        raise ValueError(f"{passes} of {total} is not a rate.")
    if total == 0:
        return Interval(0.0, 1.0, 0.5)
    rate, share = passes / total, z * z / total
    center = (rate + share / 2) / (1 + share)
    half = z / (1 + share) * sqrt(rate * (1 - rate) / total + share / (4 * total))
    return Interval(max(0.0, center - half), min(1.0, center + half), center)


def newcombe(before: int, trials_before: int, after: int, trials_after: int) -> tuple[float, float]:
    """Return the 95 % interval of a difference of two rates, after minus before (Newcombe 1998, method 10).

    Raises `ValueError` if passes are not between 0 and their trials.
    """
    old, new = wilson(before, trials_before), wilson(after, trials_after)
    p, q = after / trials_after, before / trials_before
    low = p - q - sqrt((p - new.lower) ** 2 + (old.upper - q) ** 2)
    high = p - q + sqrt((new.upper - p) ** 2 + (q - old.lower) ** 2)
    return low, high


def mean_difference(rates: Sequence[tuple[int, int, int, int]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of several differences of rates, each over its own trials only.

    Takes passes and trials before, passes and trials after, of each scenario. Recovers each variance from Newcombe's
    interval (the method MOVER, Zou and Donner 2008). Raises `ValueError` without scenarios.
    """
    if not rates:
        raise ValueError("The mean difference of no scenarios has no interval.")
    below = above = mean = 0.0
    for before, trials_before, after, trials_after in rates:
        difference = after / trials_after - before / trials_before
        low, high = newcombe(before, trials_before, after, trials_after)
        mean += difference / len(rates)
        below += (difference - low) ** 2
        above += (high - difference) ** 2
    return mean - sqrt(below) / len(rates), mean + sqrt(above) / len(rates)


def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution with `freedom` degrees of freedom.

    Uses the Cornish-Fisher expansion of the normal quantile (Abramowitz and Stegun 1964, 26.7.5): within 1 % of the
    exact value for probabilities from 0.025 to 0.975. Raises `ValueError` below two degrees of freedom, where the
    expansion is not valid.
    """
    if freedom < 2:
        raise ValueError(f"{freedom} degrees of freedom are too few. At least 2 are needed.")
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / float(freedom) ** power for power, term in enumerate(terms))


def weighted_mean(weighed: Iterable[tuple[float, float]]) -> float:
    """Return the weighted mean of (value, weight) pairs, 0 without a positive weight."""
    pairs = list(weighed)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total > 0 else 0.0


def pass_hat_k(passed: int, trials: int, k: int) -> float | None:
    """Return the unbiased estimate that k trials all pass; None below k trials.

    pass^k of Yao et al. 2024 (tau-bench, arXiv 2406.12045). Raises `ValueError` for k below 1.
    """
    return _chance_of_draw(passed, trials, k)


def pass_at_k(passed: int, trials: int, k: int) -> float | None:
    """Return the unbiased estimate that at least one of k trials passes; None below k trials.

    pass@k of Chen et al. 2021 (arXiv 2107.03374). Raises `ValueError` for k below 1.
    """
    failing = _chance_of_draw(trials - passed, trials, k)
    return None if failing is None else 1.0 - failing


def _chance_of_draw(chosen: int, total: int, k: int) -> float | None:
    """Return the chance that k draws without replacement are all among the chosen."""
    if k < 1:
        raise ValueError(f"k is {k}; it must be 1 or more.")
    return comb(chosen, k) / comb(total, k) if total >= k else None


MOST_PRIOR = 1_000.0
"""The largest weight of the pooled rate, where the rates vary less than chance alone would let them."""


def shrunken_rates(counts: Sequence[tuple[int, int]]) -> list[float]:
    """Return each rate drawn towards the pooled one, the more the fewer trials it has (empirical Bayes).

    Takes hits and trials of each group. The beta-binomial prior is estimated by the method of moments (Kleinman 1973,
    JASA 68): its weight in trials is 1 / rho - 1, with rho the correlation within groups. Groups without trials get the
    pooled rate; with one group there is nothing to learn from, so its rate stays.
    """
    known = [(hits, n) for hits, n in counts if n]
    total = sum(n for _, n in known)
    if not total:
        return [0.0 for _ in counts]
    pooled = sum(hits for hits, _ in known) / total
    if len(known) < 2 or pooled in (0.0, 1.0):
        return [hits / n if n else pooled for hits, n in counts]
    spread = sum(n * (hits / n - pooled) ** 2 for hits, n in known)
    groups = len(known) - 1
    room = total - sum(n * n for _, n in known) / total - groups
    rho = (spread - pooled * (1 - pooled) * groups) / (pooled * (1 - pooled) * room) if room > 0 else 0.0
    weight = min(MOST_PRIOR, 1 / rho - 1) if rho > 0 else MOST_PRIOR
    weight = max(0.0, weight)
    return [(hits + weight * pooled) / (n + weight) if n + weight else pooled for hits, n in counts]
