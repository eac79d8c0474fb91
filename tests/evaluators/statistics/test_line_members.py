"""Which runs a line has after regressions, decisions and improvements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluators.statistics.line_members import AlertDecision, LineRun, members_after


def runs(*verdicts: str, first: int = 1, **changes: object) -> list[LineRun]:
    """Return runs numbered from `first` that closed in the second of their number; a regression's alert is open."""
    return [
        LineRun(key, verdict, AlertDecision.OPEN if verdict == "regressed" else None, float(key), **changes)
        for key, verdict in enumerate(verdicts, first)
    ]


def decided(run: LineRun, decision: AlertDecision, at: float) -> LineRun:
    return LineRun(run.key, run.verdict, decision, run.finished, at)


STEADY = runs(*[""] * 6)


def test_runs_without_a_regression_join():
    assert members_after(STEADY).newest == [6, 5, 4, 3, 2, 1]
    assert members_after(runs(*["no_evidence"] * 14)).newest == list(range(14, 4, -1))


def test_an_undecided_regression_freezes_the_line():
    found = members_after([*STEADY, *runs("regressed", "too_little", "regressed", "equivalent", first=7)])
    assert (found.newest, found.since) == ([6, 5, 4, 3, 2, 1], 7)
    assert [each.key for each in found.pending] == [7, 8, 9, 10]


def test_three_good_runs_in_a_row_join_with_the_regression():
    good = runs("regressed", "too_little", "regressed", "equivalent", "", "", first=7)
    found = members_after([*STEADY, *good])
    assert (found.newest, found.since) == ([12, 11, 10, 9, 8, 7, 6, 5, 4, 3], None)


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        (AlertDecision.ACCEPTED, [8, 7]),
        (AlertDecision.REJECTED, [8, 7, 6, 5, 4, 3, 2, 1]),
        (AlertDecision.FIXED, [6, 5, 4, 3, 2, 1]),
    ],
)
def test_a_decision_ends_the_freeze(decision, line):
    bad, after = runs("regressed", "regressed", first=7)
    found = members_after([*STEADY, decided(bad, decision, 8.5), after])
    # The second one's own alert is open, so it waits.
    assert found.since == 8
    quiet = LineRun(8, "regressed", None, 8.0)
    found = members_after([*STEADY, decided(bad, decision, 8.5), quiet])
    assert (found.newest, found.since) == (line, None)


def test_runs_after_a_decision_are_judged_by_the_line_that_it_left():
    (bad,) = runs("regressed", first=7)
    later = runs("no_evidence", "equivalent", first=8)
    found = members_after([*STEADY, decided(bad, AlertDecision.ACCEPTED, 7.5), *later])
    assert found.newest == [9, 8, 7]
    found = members_after([*STEADY, decided(bad, AlertDecision.FIXED, 7.5), *later])
    assert found.newest == [9, 8, 6, 5, 4, 3, 2, 1]


def test_an_improvement_starts_a_new_line_when_a_second_run_shows_it():
    first = members_after([*STEADY, *runs("improved", first=7)])
    assert (first.newest, first.improved) == ([6, 5, 4, 3, 2, 1], 7)
    assert members_after([*STEADY, *runs("improved", "improved", first=7)]).newest == [8]
    assert members_after([*STEADY, *runs("improved", "", first=7)]).newest == [8, 7, 6, 5, 4, 3, 2, 1]


def test_an_improvement_joins_a_young_line():
    assert members_after(runs("", "", "improved", "")).newest == [4, 3, 2, 1]


def test_a_configuration_that_was_changed_on_purpose_begins_a_line():
    (worse,) = runs("regressed", first=7, is_other=True)
    assert members_after([*STEADY, replace(worse, decision=None)]).newest == [7]
    assert members_after([*STEADY, *runs("no_evidence", first=7, is_other=True)]).newest[:2] == [7, 6]
    frozen = [*STEADY, *runs("regressed", first=7), *runs("regressed", first=8, is_other=True)]
    assert members_after(frozen).since == 7


def test_a_change_on_purpose_that_somebody_is_asked_about_freezes_the_line():
    (worse,) = runs("regressed", first=7, is_other=True)
    assert members_after([*STEADY, worse]).since == 7
    intended = members_after([*STEADY, decided(worse, AlertDecision.ACCEPTED, 8.0)])
    assert (intended.since, intended.newest) == (None, [7])


def test_a_line_goes_on_from_what_is_known_before():
    assert members_after(runs("", first=7), begin=[1, 2]).newest == [7, 2, 1]
