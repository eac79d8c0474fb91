"""Levels of several looks, and what follows each."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from evaluators.statistics.looks import (
    ONE_LOOK,
    LookDecision,
    decide_look,
    look_sizes,
    plan_levels,
    planned_levels,
    spent_error,
    state_of,
    unplanned_levels,
)
from evaluators.statistics.measure_change import Sample
from tests.evaluators.statistics.simulated_looks import (
    MIDDLE,
    NEAR_0,
    NEAR_1,
    Plan,
    simulated,
    unplanned_alarms,
)

QUARTERS = (0.25, 0.5, 0.75, 1.0)


def side(*passes, trials=6):
    return {str(key): Sample(trials, each / trials) for key, each in enumerate(passes)}


def test_levels_are_the_published_ones_of_four_equal_looks():
    levels = plan_levels(QUARTERS, tuple(spent_error(each, 0.05) for each in QUARTERS))
    bounds = [NormalDist().inv_cdf(1 - level / 2) for level in levels]
    # Lan and DeMets' spending of the O'Brien-Fleming kind, two-sided 0.05.
    assert bounds == pytest.approx([4.333, 2.963, 2.359, 2.014], abs=0.005)


def test_all_of_an_error_is_spent_at_the_end_and_none_at_the_beginning():
    assert (spent_error(0.0, 0.03), spent_error(1.0, 0.03)) == (0.0, pytest.approx(0.03))
    assert spent_error(0.25, 0.03) < 1e-5


def test_a_single_planned_look_has_the_levels_of_a_comparison_without_looks():
    assert planned_levels([(1.0, 1.0)]) == pytest.approx(ONE_LOOK, rel=0.01)
    assert unplanned_levels([(8.0, 8.0)]) == ONE_LOOK


def test_the_levels_of_unplanned_looks_fall():
    levels = [
        unplanned_levels([(float(n), float(n)) for n in range(1, looks + 1)]) for looks in (1, 2, 3, 10)
    ]
    assert [each.pass_rate for each in levels] == sorted((each.pass_rate for each in levels), reverse=True)
    assert levels[1].pass_rate < ONE_LOOK.pass_rate / 2


def test_a_look_without_new_information_finds_nothing():
    assert planned_levels([(0.5, 0.5), (0.5, 0.5)]).pass_rate < 1e-9


@pytest.mark.parametrize(
    ("first", "most", "sizes"),
    [(3, 12, (3, 6, 9, 12)), (2, 9, (2, 5, 7, 9)), (1, 3, (1, 2, 3)), (5, 6, (5, 6)), (4, 4, (4,))],
)
def test_looks_are_spaced_evenly(first, most, sizes):
    assert look_sizes(first, most) == sizes


def looked(before, after, most=12, *, is_last=False, is_paired=True):
    state = state_of(before, after, 0.05, most, is_paired=is_paired)
    assert state is not None
    return decide_look(state, planned_levels([(state.fraction, state.table_fraction)]), is_last=is_last)


def test_a_broken_scenario_gets_trials_before_those_without_a_change():
    found = looked(side(6, 6, 6, 6, 6, 5), side(6, 6, 6, 2, 6, 5))
    assert (found.decision, found.undecided) == (LookDecision.GO_ON, ("3",))


def test_every_scenario_gets_trials_while_the_pass_rate_may_change():
    found = looked(side(6, 6, 6, 6, 6, 6), side(5, 5, 5, 5, 6, 5))
    assert (found.decision, len(found.undecided)) == (LookDecision.GO_ON, 6)


def test_without_any_difference_half_of_the_trials_are_enough():
    assert looked(side(6, 6, 5), side(6, 6, 5)).decision is LookDecision.FUTILE
    assert looked(side(6, 6, 5), side(6, 6, 5), most=24).decision is LookDecision.GO_ON


def test_a_large_drop_is_decided_and_the_last_look_is_the_limit():
    assert looked(side(*[6] * 8), side(*[0] * 8)).decision is LookDecision.DECIDED
    assert looked(side(6, 6, 6), side(5, 5, 6), is_last=True).decision is LookDecision.LIMIT


def test_the_information_of_a_fixed_baseline_counts():
    state = state_of(side(3, 3, trials=3), side(3, 3, trials=3), 0.05, 12, is_paired=False)
    assert state is not None
    assert state.fraction == pytest.approx((1 / 3 + 1 / 12) / (2 / 3))


def test_sides_without_a_common_scenario_have_no_state():
    assert state_of(side(3), {"other": Sample(3, 1.0)}, 0.05, 12, is_paired=True) is None


def test_looks_raise_few_false_alarms_and_save_trials():
    found = simulated(Plan(5, 3, 12), comparisons=60)
    assert found.changed <= 0.1
    assert found.trials < 0.85


def test_what_one_comparison_finds_looks_find_with_fewer_trials():
    looks, fixed = (
        simulated(Plan(10, 3, 12, 12), beta=(8, 1.2), change=-0.3, comparisons=25, looks=each)
        for each in (True, False)
    )
    assert looks.regressed >= fixed.regressed - 0.05
    assert looks.trials < 0.6 < fixed.trials == 1.0


def test_six_unplanned_looks_share_one_budget():
    free, own = (unplanned_alarms(10, 2, looks=6, comparisons=80, spends=spends) for spends in (False, True))
    assert own <= 0.05 < free


# 5 % less what the other measures have, and two standard errors of so many comparisons.
COMPARISONS = 300
MOST_ALARMS = 0.045 + 2 * (0.045 * 0.955 / COMPARISONS) ** 0.5


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("scenarios", "baseline", "beta"),
    [(3, 0, MIDDLE), (10, 12, MIDDLE), (20, 0, MIDDLE), (50, 3, MIDDLE), (10, 0, NEAR_0), (10, 12, NEAR_1)],
)
def test_looks_raise_at_most_5_percent(scenarios, baseline, beta):
    plan = Plan(scenarios, 3, 12, baseline)
    assert simulated(plan, beta=beta, comparisons=COMPARISONS).changed <= MOST_ALARMS


@pytest.mark.simulation
@pytest.mark.parametrize("kind", [{}, {"differing": True}, {"until_decided": True}])
def test_unplanned_looks_raise_at_most_5_percent(kind):
    assert unplanned_alarms(10, 3, looks=4, comparisons=COMPARISONS, **kind) <= MOST_ALARMS
