"""Share the false alarms of a comparison among its tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evaluators.statistics.significance import holm

ALPHA = 0.05
"""The share of false alarms of a comparison as a whole."""


class Shares(NamedTuple):
    """The levels of a comparison's tests, which together are at most `ALPHA`."""

    pass_rate: float
    """Of the suite's pass rate."""
    scenarios: float
    """Of the table of scenarios (Benjamini and Hochberg)."""
    others: float
    """Of the other headline measures (Holm), which have the pass rate's level as well once that is significant (Bretz
    et al. 2009)."""


ONE_RUN = Shares(pass_rate=0.03, scenarios=0.05, others=0.005)
"""Against one run the table's exact test raises at most 1 % at its level (`tests/evaluators/statistics/simulated_runs.py`)."""
AGAINST_LINE = Shares(pass_rate=0.03, scenarios=0.01, others=0.02)
"""Against a line (`evaluators.statistics.line`); its scenarios are tested in windows, and by fresh trials beside these."""
PASS_RATE_SHARE, SCENARIOS_SHARE, _ = ONE_RUN


class Levels(NamedTuple):
    """The levels of a comparison's two questions; lower while it is looked at before its end (`evaluators.statistics.looks`)."""

    pass_rate: float = PASS_RATE_SHARE
    scenarios: float = SCENARIOS_SHARE


ONE_LOOK = Levels()
"""The levels of a comparison that nobody looked at before."""


def share_error(
    ps: Sequence[float | None], shares: Shares, *, has_passes: bool
) -> list[tuple[float | None, float]]:
    """Return each headline measure's p, corrected so that 0.05 decides, and its part of the error.

    `has_passes` says whether the first p is that of the suite's pass rate.
    """
    first = ps[0] if has_passes else None
    others = ps[1:] if has_passes else ps
    is_passed_on = first is not None and first < shares.pass_rate
    share = shares.others + (shares.pass_rate if is_passed_on else 0.0)
    tested = [p for p in others if p is not None]
    corrected = iter(holm(tested))
    parts: list[tuple[float | None, float]] = []
    if first is not None:
        parts.append((scale_p(first, shares.pass_rate), shares.pass_rate))
    part = share / max(1, len(tested))
    return parts + [(None if p is None else scale_p(next(corrected), share), part) for p in others]


def scale_p(p: float, share: float) -> float:
    """Return a p so that 0.05 decides where `share` does."""
    return min(1.0, p * ALPHA / share)
