"""The expected trials of a run until a verdict agree with simulated looks."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.statistics.expected_looks import Earlier, expected_further_trials, expected_trials
from tests.evaluators.statistics.simulated_looks import Plan, looked_at


@pytest.mark.parametrize("baseline", [0, 12])
def test_the_expected_number_is_about_that_of_simulated_looks(baseline):
    rng, rates = np.random.default_rng(3), np.full(8, 0.85)
    plan = Plan(8, 3, 12, baseline)
    trials = [looked_at(rng, plan, rates, rates)[1] for _ in range(60)]
    simulated = np.mean(trials) / 8 / (1 if baseline else 2)
    found = expected_trials((0.85,) * 8, 3, 12, baseline)
    assert found.greatest == 12
    assert found.expected == pytest.approx(simulated, rel=0.2)


def test_scenarios_that_always_pass_need_half_of_the_trials():
    assert expected_trials((1.0,) * 5, 3, 12, 0).expected == 6


def test_it_is_always_the_same():
    assert expected_trials.__wrapped__((0.7,) * 50, 3, 12, 0) == expected_trials((0.7,) * 50, 3, 12, 0)


def test_further_trials_stop_at_the_first_look_where_the_runs_differ_clearly():
    broken = (Earlier(5, 5, 0, 5, True),) * 10
    assert expected_further_trials(broken, 5, 20).expected == 5


def test_further_trials_of_what_may_be_chance_take_more_but_not_all():
    unclear = (Earlier(4, 5, 3, 5, True),) * 10
    equal = (Earlier(4, 5, 4, 5, True),) * 10
    found, least = (
        expected_further_trials(unclear, 3, 12).expected,
        expected_further_trials(equal, 3, 12).expected,
    )
    assert 3 < least < found < 12


def test_scenarios_that_get_no_further_trials_count_as_they_are():
    some = (Earlier(5, 5, 1, 5, True),) * 3 + (Earlier(5, 5, 5, 5, False),) * 7
    alone = some[:3]
    assert expected_further_trials(some, 5, 20) != expected_further_trials(alone, 5, 20)
