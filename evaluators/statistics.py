"""Intervals for what is measured on few trials."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

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
