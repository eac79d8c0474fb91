"""Which runs a line has after alerts, decisions and improvements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluators.statistics.line_members import AlertDecision, LineRun, Members, members_after

EXPORT = frozenset(("export",))


def calm(*keys: int, **changes: object) -> list[LineRun]:
    """Return runs without an alert that closed in the second of their number."""
    return [LineRun(key, finished=float(key), **changes) for key in keys]


def red(key: int, decision: AlertDecision | None = AlertDecision.OPEN, **changes: object) -> LineRun:
    return LineRun(key, True, decision, finished=float(key), **changes)


def named(key: int, **changes: object) -> LineRun:
    return LineRun(key, False, AlertDecision.OPEN, EXPORT, finished=float(key), **changes)


STEADY = calm(1, 2, 3, 4, 5, 6)


def joined(members: Members) -> list[int]:
    assert members.since is None
    return members.newest


def test_runs_without_an_alert_join():
    assert joined(members_after(STEADY)) == [6, 5, 4, 3, 2, 1]


def test_a_red_run_that_nobody_is_asked_about_joins():
    assert joined(members_after([*STEADY, red(7, None)])) == [7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("first", [red(7), named(7)])
def test_an_open_alert_freezes_the_line(first):
    found = members_after([*STEADY, first, *calm(8, 9, worse=EXPORT)])
    assert (found.newest, found.since) == ([6, 5, 4, 3, 2, 1], 7)
    assert [each.key for each in found.pending] == [7, 8, 9]


def test_three_runs_in_a_row_that_are_not_red_release_the_suite():
    again = [red(7), *calm(8), red(9, None), *calm(10, 11)]
    assert members_after([*STEADY, *again]).since == 7
    found = members_after([*STEADY, *again, *calm(12)])
    assert (joined(found)[:6], found.decided) == ([12, 11, 10, 9, 8, 7], 3)


def test_three_runs_in_a_row_that_do_not_look_worse_release_a_scenario():
    found = members_after([*STEADY, named(7), *calm(8, 9)])
    assert (found.since, found.held) == (7, {"export": 2})
    assert members_after([*STEADY, named(7), *calm(8, 9), *calm(10, worse=EXPORT)]).held == {"export": 0}
    found = members_after([*STEADY, named(7), *calm(8, 9, 10)])
    assert (joined(found)[:3], found.decided) == ([10, 9, 8], 3)


def test_one_good_run_releases_a_young_line_but_no_scenario():
    assert joined(members_after([*calm(1, 2), red(3), *calm(4)])) == [4, 3, 2, 1]
    assert members_after([*calm(1, 2), named(3), *calm(4)]).since == 3


def test_a_fixed_scenario_begins_anew_while_others_are_held():
    both = replace(named(7), named=EXPORT | {"list"})
    found = members_after([*STEADY, both, *calm(8, worse=EXPORT | {"list"})])
    assert found.held == {"export": 0, "list": 0}
    found = members_after([*STEADY, both, *calm(8, fixed=EXPORT, worse=frozenset(("list",))), *calm(9)])
    assert (found.held, found.since_fixed, found.since) == ({"list": 1}, {"export": 1}, 7)


def test_an_alert_that_is_closed_as_fixed_lets_the_run_join_that_showed_it():
    fixed = replace(named(7), decision=AlertDecision.FIXED, decided=9.0)
    found = members_after([*STEADY, fixed, *calm(8, worse=EXPORT), *calm(9, fixed=EXPORT)])
    assert (joined(found), found.decided) == ([9, 6, 5, 4, 3, 2, 1], 1)


@pytest.mark.parametrize(
    ("decision", "line"),
    [
        (AlertDecision.ACCEPTED, [8, 7]),
        (AlertDecision.REJECTED, [8, 7, 6, 5, 4, 3, 2, 1]),
        (AlertDecision.FIXED, [6, 5, 4, 3, 2, 1]),
    ],
)
def test_a_decision_ends_the_freeze(decision, line):
    bad = replace(red(7), decision=decision, decided=8.5)
    # The second one's own alert is open, so it waits.
    assert members_after([*STEADY, bad, red(8)]).since == 8
    found = members_after([*STEADY, bad, red(8, None)])
    assert (joined(found), found.decided) == (line, 0)


def test_runs_after_a_decision_are_judged_by_the_line_that_it_left():
    bad = replace(red(7), decided=7.5)
    found = members_after([*STEADY, replace(bad, decision=AlertDecision.ACCEPTED), *calm(8, 9)])
    assert (joined(found), found.decided) == ([9, 8, 7], 2)
    assert joined(members_after([*STEADY, replace(bad, decision=AlertDecision.FIXED), *calm(8)]))[:2] == [
        8,
        6,
    ]


def test_an_alert_of_the_suite_stays_when_that_of_a_scenario_is_decided():
    first = replace(named(7), decision=AlertDecision.FIXED, decided=9.5)
    found = members_after([*STEADY, first, *calm(8), red(9)])
    assert (found.since, found.held, found.is_red) == (9, {}, True)


def test_an_improvement_starts_a_new_line_when_a_second_run_shows_it():
    first = members_after([*STEADY, *calm(7, is_improved=True)])
    assert (first.newest, first.improved) == ([6, 5, 4, 3, 2, 1], 7)
    assert joined(members_after([*STEADY, *calm(7, 8, is_improved=True)])) == [8]
    assert joined(members_after([*STEADY, *calm(7, is_improved=True), *calm(8)]))[:3] == [8, 7, 6]


def test_an_improvement_joins_a_young_line():
    assert joined(members_after([*calm(1, 2), *calm(3, is_improved=True), *calm(4)])) == [4, 3, 2, 1]


def test_a_configuration_that_was_changed_on_purpose_begins_a_line():
    worse = red(7, None, is_other=True)
    assert joined(members_after([*STEADY, worse])) == [7]
    assert joined(members_after([*STEADY, *calm(7, is_other=True)]))[:2] == [7, 6]
    assert members_after([*STEADY, red(7), replace(worse, key=8)]).since == 7


def test_a_change_on_purpose_that_somebody_is_asked_about_freezes_the_line():
    worse = red(7, is_other=True)
    assert members_after([*STEADY, worse]).since == 7
    intended = replace(worse, decision=AlertDecision.ACCEPTED, decided=8.0)
    assert joined(members_after([*STEADY, intended])) == [7]


def test_a_line_goes_on_from_what_is_known_before():
    assert joined(members_after(calm(7), begin=[1, 2])) == [7, 2, 1]
