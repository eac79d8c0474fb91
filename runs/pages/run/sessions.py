"""List the sessions of a run that imported them."""

from __future__ import annotations

from runs.warehouse.digests import Digest, DigestedTrial

MOST_SHOWN = 100


def weakest_sessions(digest: Digest) -> list[DigestedTrial]:
    """Return the sessions with the lowest first-try success first."""
    return sorted(digest.trials, key=lambda each: 1.0 if each.first_try is None else each.first_try)[
        :MOST_SHOWN
    ]
