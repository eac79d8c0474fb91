"""What a plan calls detectable against a line is found about four times out of five."""

from __future__ import annotations

import pytest

from evaluators.statistics.line import detectable_against_line
from tests.evaluators.statistics.simulated_line_plans import DESIGNS, Plan, planned_and_found


@pytest.mark.simulation
@pytest.mark.parametrize("plan", DESIGNS, ids=str)
def test_detectable_changes_are_found_four_times_out_of_five(plan: Plan) -> None:
    assert planned_and_found(plan, 200)[1] == pytest.approx(0.8, abs=0.05 + 2 * 0.03)


def test_more_trials_and_a_longer_line_detect_less() -> None:
    rates = [0.85] * 10

    def detectable(runs: int, after: int) -> float:
        steady = [0.84, 0.86] * 5
        return detectable_against_line(rates, [5 * runs] * 10, [after] * 10, steady[:runs], 0.05)

    assert detectable(10, 10) < detectable(10, 5) < detectable(5, 5)


def test_a_line_that_drifts_detects_more_only() -> None:
    rates, before, after = [0.85] * 10, [50] * 10, [5] * 10
    steady, drifting = [0.84, 0.86] * 5, [0.7, 1.0] * 5
    few = detectable_against_line(rates, before, after, steady, 0.05)
    assert few < detectable_against_line(rates, before, after, drifting, 0.05)


def test_a_change_below_the_smallest_effect_is_never_promised() -> None:
    many = detectable_against_line([0.9] * 50, [500] * 50, [100] * 50, [0.9] * 10, 0.2)
    assert many > 0.2
