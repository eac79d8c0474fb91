"""Say what the fresh trials of a scenario show."""

from __future__ import annotations

from evaluators.statistics.retest import ENOUGH_OLD, ERRORS, Retest, RetestKind, RetestOutcome


def describe_retest(retest: Retest) -> str:
    """Return what a scenario's fresh trials show, without a full stop; while they run, that they do."""
    said = _say_outcome(retest)
    if not retest.stopped:
        return said
    ran = retest.fresh.trials
    if retest.kind is RetestKind.IN_TURN:
        ran = min(ran, retest.old.trials)
    ended = "the others hit errors" if retest.stopped == ERRORS else "limit reached"
    return f"{said}; {ran} of {retest.planned}, {ended}"


def _say_outcome(retest: Retest) -> str:
    passed, trials = retest.fresh
    failed = f"{trials - passed} of {trials}"
    if retest.outcome is None:
        return f"runs again, {retest.planned} fresh trials"
    if retest.outcome is RetestOutcome.TOO_FEW:
        return "too few earlier trials"
    if retest.outcome is RetestOutcome.MENDED:
        return f"fixed, {passed} of {trials} pass"
    if retest.kind is RetestKind.MEND:
        return f"{passed} of {trials} pass, not yet fixed"
    if retest.outcome is RetestOutcome.PASSES_AGAIN:
        return f"passes again, {passed} of {trials}"
    if retest.outcome is RetestOutcome.NAMED:
        beside = f"; {retest.old.passed} of {retest.old.trials} pass with the first guidance"
        return f"failed tonight, and {failed} again{beside if retest.kind is RetestKind.IN_TURN else ''}"
    return f"{failed} failed, not decided"


def describe_old_side(retest: Retest) -> str:
    """Return that a scenario has few earlier trials, so that less is found; empty if it has enough."""
    old = retest.old
    if retest.kind is not RetestKind.LINE or old.trials >= ENOUGH_OLD:
        return ""
    trials = "1 earlier trial" if old.trials == 1 else f"{old.trials} earlier trials"
    return f"Compared with {trials}; from {ENOUGH_OLD} on, more is found."
