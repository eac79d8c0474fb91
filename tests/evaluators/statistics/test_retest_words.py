"""What fresh trials show, in words."""

from __future__ import annotations

import pytest

from evaluators.statistics.retest import (
    ERRORS,
    Passes,
    Retest,
    RetestKind,
    RetestOutcome,
    describe_reference,
    describe_retest,
)


def retest(outcome: RetestOutcome | None, passed: int, trials: int, **changes: object) -> Retest:
    """Return a scenario that failed three trials."""
    given = {"kind": RetestKind.LINE, "planned": 6, "old": Passes(30, 30), **changes}
    fresh = Passes(passed, trials)
    return Retest("add", batch=1, first=Passes(0, 3), level=0.001, fresh=fresh, outcome=outcome, **given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (retest(RetestOutcome.NAMED, 0, 6), "failed tonight, and 6 of 6 again"),
        (retest(RetestOutcome.PASSES_AGAIN, 6, 6), "passes again, 6 of 6"),
        (retest(RetestOutcome.NOT_DECIDED, 2, 5), "3 of 5 failed, not decided"),
        (retest(RetestOutcome.TOO_FEW, 0, 0), "too few earlier trials"),
        (retest(None, 0, 0), "runs again, 6 fresh trials"),
        (retest(RetestOutcome.FIXED, 6, 6, kind=RetestKind.FIX), "fixed, 6 of 6 pass"),
        (retest(RetestOutcome.NOT_DECIDED, 5, 6, kind=RetestKind.FIX), "5 of 6 pass, not yet fixed"),
        (retest(RetestOutcome.NOT_DECIDED, 0, 3, stopped="The budget of $1.00 was reached."), "3 of 3 failed, not decided; 3 of 6, limit reached"),
        (retest(RetestOutcome.NAMED, 0, 5, stopped=ERRORS), "failed tonight, and 5 of 5 again; 5 of 6, the others hit errors"),
        (retest(RetestOutcome.NAMED, 0, 6, kind=RetestKind.IN_TURN, old=Passes(6, 6)), "failed tonight, and 6 of 6 again; 6 of 6 pass with the first guidance"),
    ],
)  # fmt: skip
def test_an_outcome_is_a_sentence(given, sentence):
    assert describe_retest(given) == sentence


def test_few_earlier_trials_are_said():
    few = retest(RetestOutcome.NAMED, 0, 7, old=Passes(3, 3))
    assert describe_reference(few) == "Compared with 3 earlier trials; from 15 on, more is found."
    assert describe_reference(retest(RetestOutcome.NAMED, 0, 6)) == ""
