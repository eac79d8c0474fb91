"""Scores beside a threshold."""

from __future__ import annotations

_MOST_PLACES = 9


def shown(score: float, threshold: float, *, reached: bool) -> str:
    """Return a score with two decimals, or with as many as show on which side of the threshold it lies."""
    texts = (f"{score:.{places}f}" for places in range(2, _MOST_PLACES + 1))
    return next((text for text in texts if (float(text) >= threshold) is reached), repr(score))
