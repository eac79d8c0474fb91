"""Weighted means."""

from __future__ import annotations

from collections.abc import Iterable


def weighted_mean(weighed: Iterable[tuple[float, float]]) -> float:
    """Return the mean of values by their weights, 0 where no weight is above 0."""
    pairs = list(weighed)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total > 0 else 0.0
