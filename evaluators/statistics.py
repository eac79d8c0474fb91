"""Intervals for what is measured on few trials."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import sqrt
from statistics import NormalDist

from msgspec import Struct

Z_95 = 1.96
"""Standard deviations of a normal distribution that hold 95 % of it."""


class Interval(Struct, frozen=True):
    """Where a rate lies, between 0 and 1."""

    lower: float
    upper: float
    center: float
    """The middle of the interval, which lies nearer to one half than the observed rate."""


@lru_cache(maxsize=4096)
def wilson(passes: int, total: int, z: float = Z_95) -> Interval:
    """Return the Wilson score interval of a rate; without trials it says nothing: 0 to 1.

    Raises `ValueError` where `passes` is not between 0 and `total`.
    """
    if not 0 <= passes <= total:
        raise ValueError(f"{passes} of {total} is no rate.")
    if total == 0:
        return Interval(0.0, 1.0, 0.5)
    rate, share = passes / total, z * z / total
    center = (rate + share / 2) / (1 + share)
    half = z / (1 + share) * sqrt(rate * (1 - rate) / total + share / (4 * total))
    return Interval(max(0.0, center - half), min(1.0, center + half), center)


@lru_cache(maxsize=4096)
def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution with so many degrees of freedom.

    By the Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun 1964, 26.7.5): within 1 % of the
    exact value for probabilities from 0.025 to 0.975. Raises `ValueError` below two degrees of freedom, where the
    expansion does not hold.
    """
    if freedom < 2:
        raise ValueError(f"{freedom} is too few degrees of freedom: give 2 or more.")
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
    """Return the mean of values by their weights, 0 where no weight is above 0."""
    pairs = list(weighed)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total > 0 else 0.0
