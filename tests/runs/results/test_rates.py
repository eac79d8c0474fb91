"""Shares of trials."""

from __future__ import annotations

import pytest

from runs.results.rates import Rate, ScenarioPair


@pytest.mark.parametrize(
    ("passed", "n", "chance"),
    [(13, 20, 286 / 1140), (5, 20, 10 / 1140), (3, 3, 1.0), (2, 2, None), (2, 9, 0.0)],
)
def test_it_gives_the_chance_that_three_trials_all_pass(passed, n, chance):
    assert Rate(passed, n).all_of(3) == (None if chance is None else pytest.approx(chance))


def test_its_interval_is_wilsons():
    assert (Rate(36, 58).low, Rate(36, 58).high) == pytest.approx((0.492, 0.734), abs=0.001)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (("pass", "fail"), ("fail", "fail", "error"), "worse"),
        (("pass", "fail"), ("pass", "fail", "pass", "fail"), "same"),
        (("fail",), ("pass",), "better"),
        (("pass",), ("error",), "unmeasured"),
        (("pass",), (), "removed"),
        ((), ("error",), "added"),
        ((), (), ""),
    ],
)
def test_a_scenarios_change_is_by_counts(before, now, change):
    assert ScenarioPair("create", before, now).change == change


def test_a_changed_scenario_is_not_comparable():
    assert ScenarioPair("create", ("pass",), ("fail",), changed=("task",)).change == "incomparable"
