"""The expected trials of a run until a verdict agree with simulated looks."""

from __future__ import annotations

import time

import numpy as np
import pytest

from evaluators.expected_looks import expected_trials
from tests.evaluators.simulated_looks import Plan, looked_at


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


def test_it_is_fast_and_always_the_same():
    expected_trials((0.5,), 1, 2, 0)
    began = time.monotonic()
    found = expected_trials((0.7,) * 50, 3, 12, 0)
    assert time.monotonic() - began < 1
    assert expected_trials.__wrapped__((0.7,) * 50, 3, 12, 0) == found
