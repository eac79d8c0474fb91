"""A run against its line: what it finds, what it forgives, and how often it is wrong."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from evaluators.statistics.line import Line, compare_amount, compare_with_line, expected_range, find_drift
from evaluators.statistics.measure_change import ChangeVerdict, ComparisonTest, MeasureRule, Sample, Scale
from evaluators.statistics.regression import decide_overall
from tests.evaluators.statistics.simulated_nights import (
    Nights,
    arms_found,
    at,
    breaking,
    broken_until,
    dearer_found,
    expected_covered,
    false_names,
    months,
    share_named,
    uneven_alarms,
)

PASS = MeasureRule("trial/pass", is_outcome=True)
JUDGE = MeasureRule("judge/judge")
COST = MeasureRule("trial/cost_usd", better_is="lower", scale=Scale.RELATIVE, smallest_effect=0.1)


def run_of(*passes: int, trials: int = 5) -> dict[str, Sample]:
    rates = [each / trials for each in passes]
    return {f"s{n}": Sample(trials, rate, trials * rate * (1 - rate)) for n, rate in enumerate(rates)}


def pass_rate(line, new, rule=PASS, **more):
    return compare_with_line([(rule, Line(line, **more), new)]).headline[0]


STEADY = [run_of(5, 4, 5, 5, 4, 5), run_of(5, 5, 4, 5, 5, 4)] * 5
DRIFTING = [run_of(*[each] * 6) for each in (5, 3, 5, 4, 3, 5, 4, 5, 3, 5)]


def test_a_fall_of_every_scenario_is_a_regression():
    change = pass_rate(STEADY, run_of(4, 3, 3, 4, 3, 3))
    assert (change.verdict, change.test, change.window) == (ChangeVerdict.REGRESSED, ComparisonTest.LINE, 1)
    assert (change.trials, change.runs_before) == ((300, 30), 10)
    assert change.upper < 0


def test_a_line_that_drifts_forgives_what_a_steady_one_does_not():
    assert pass_rate(DRIFTING, run_of(4, 3, 3, 4, 3, 3)).verdict is ChangeVerdict.AS_EXPECTED


def test_one_failure_after_a_line_at_100_percent_is_as_expected():
    line = [run_of(3, 3, 3, 3, 3, trials=3)] * 10
    change = pass_rate(line, run_of(3, 3, 2, 3, 3, trials=3))
    # Student's t alone is certain, because nothing has varied; permuted trials are not.
    assert change.verdict is ChangeVerdict.AS_EXPECTED
    assert change.expected[0] < 14 / 15 < change.expected[1]


def test_three_nights_show_what_one_does_not():
    rng = np.random.default_rng(4)

    def night(rate: float) -> dict[str, Sample]:
        return run_of(*rng.binomial(5, rate, 10).tolist())

    line = [night(0.9) for _ in range(12)]
    bad = [night(0.78) for _ in range(3)]
    assert pass_rate([*bad[1:], *line], bad[0]).window in (3, 7)


@pytest.mark.parametrize("pending", [0, 2])
def test_a_frozen_line_is_the_old_side_and_tonight_alone_decides(pending):
    worse = run_of(3, 3, 3, 3, 3, 3)
    change = pass_rate([worse, worse, *STEADY], run_of(5, 4, 5, 5, 4, 5), pending=pending)
    # Together with the nights before, tonight is still worse than the line before these.
    assert (change.window, change.verdict is ChangeVerdict.REGRESSED) == (
        (1, False) if pending else (3, True)
    )


def test_scenarios_that_were_added_later_move_nothing():
    hard = {f"new{n}": Sample(5, 0.2, 0.8) for n in range(4)}
    line = [{**run, **hard} for run in STEADY[:2]] + STEADY[2:]
    change = pass_rate(line, {**run_of(5, 4, 5, 5, 4, 5), **hard})
    assert abs(change.effect) < 0.02
    assert pass_rate(STEADY, {**run_of(5, 4, 5, 5, 4, 5), **hard}).scenarios == 6


def test_a_broken_scenario_is_named_by_its_last_runs_together():
    broken = run_of(0, 4, 5, 5, 4, 5, trials=5)
    found = compare_with_line([(PASS, Line([broken, *STEADY]), broken)])
    assert found.headline[0].broke == ("s0",)
    assert decide_overall(found.headline) is ChangeVerdict.REGRESSED
    change = found.scenarios["s0"]
    assert (change.window, change.trials, change.after) == (2, (50, 10), 0.0)


def test_one_bad_night_names_no_scenario():
    line = [run_of(*[3] * 6, trials=3), run_of(*[2] * 6, trials=3)] * 5
    found = compare_with_line([(PASS, Line(line), run_of(0, *[3] * 5, trials=3))])
    assert found.headline[0].broke == ()


def test_windows_begin_anew_after_a_fix():
    broken = run_of(0, 4, 5, 5, 4, 5)
    line = Line([broken, broken, *STEADY], since_fixed={"s0": 1})
    assert compare_with_line([(PASS, line, broken)]).headline[0].broke == ()


def test_few_runs_are_no_line_and_have_a_table():
    found = compare_with_line([(PASS, Line([run_of(0, 5), run_of(5, 5), run_of(5, 5)]), run_of(0, 5))])
    assert found.headline == []
    assert found.scenarios["s0"].verdict is ChangeVerdict.REGRESSED


def test_a_scenario_that_no_run_has_is_left_out():
    found = compare_with_line([(PASS, Line(STEADY), {**run_of(5, 5), "new": Sample(5, 0.0)})])
    assert list(found.scenarios) == ["s0", "s1"]
    assert compare_with_line([(PASS, Line(STEADY), {"new": Sample(5, 0.0)})]).headline == []


def scores(mean: float, trials: int = 5) -> dict[str, Sample]:
    return {f"s{place}": Sample(trials, mean + place / 100, 0.0004 * (trials - 1)) for place in range(6)}


def test_scores_are_compared_by_what_they_vary():
    line = [scores(0.8 + step / 1000) for step in range(10)]
    assert pass_rate(line, scores(0.7), JUDGE).verdict is ChangeVerdict.REGRESSED
    assert pass_rate(line, scores(0.79), JUDGE).verdict is ChangeVerdict.SMALL


def test_what_lies_outside_of_the_expected_is_not_called_expected():
    line = [scores(0.8 + step / 1000) for step in range(10)]
    change = pass_rate(line, scores(0.7955), JUDGE)
    assert change.verdict is ChangeVerdict.NO_EVIDENCE
    assert change.after < change.expected[0]


def test_a_score_that_is_better_when_lower_regresses_upwards():
    line = [scores(0.2 + step / 1000) for step in range(10)]
    errors = MeasureRule("interaction/error_rate", better_is="lower")
    assert pass_rate(line, scores(0.4), errors).verdict is ChangeVerdict.REGRESSED
    assert pass_rate(line, scores(0.05), errors).verdict is ChangeVerdict.IMPROVED


def test_a_measure_on_the_relative_scale_is_refused():
    with pytest.raises(ValueError, match="trial/cost_usd isn't a measure from 0 to 1"):
        compare_with_line([(COST, Line(STEADY), run_of(5))])


def costs(factor: float, rng: np.random.Generator) -> dict[str, Sample]:
    logs = rng.normal(log(factor), 0.2, (10, 3))
    return {str(n): Sample(3, float(row.mean()), float(row.var() * 3)) for n, row in enumerate(logs)}


def test_a_dearer_trial_is_a_share_of_a_typical_one():
    rng = np.random.default_rng(2)
    line = [costs(1.0, rng) for _ in range(16)]
    dearer = costs(1.5, rng)
    change = compare_amount(COST, Line(line), dearer, (Line(line), dearer))
    assert change.verdict is ChangeVerdict.REGRESSED
    assert change.effect == pytest.approx(0.5, abs=0.15)
    alike = costs(1.0, rng)
    same = compare_amount(COST, Line(line), alike, (Line(line), alike))
    assert same.verdict in (ChangeVerdict.EQUIVALENT, ChangeVerdict.AS_EXPECTED)


def test_a_decline_of_months_is_a_drift_and_days_are_none():
    falling = [0.95 - night * 0.004 for night in range(40)]
    before, after, is_certain = find_drift(falling, 0.05)
    assert is_certain
    assert before - after == pytest.approx(0.12, abs=0.01)
    assert find_drift(falling[:29], 0.05) is None
    assert find_drift([0.9, 0.94] * 20, 0.05) is None
    on_its_way = [0.9, 1.0, 0.8, 0.95, 0.85] * 6 + [0.7, 1.0, 0.75, 0.95, 0.85] * 2
    assert not find_drift(on_its_way, 0.04).is_certain


def test_a_pictures_range_needs_a_line():
    assert expected_range([(0.9, 10)] * 4, 10) is None
    low, high = expected_range([(1.0, 10)] * 6, 10)
    assert low < 1.0
    assert high == 1.0


def test_a_seeded_month_is_calm_and_a_broken_scenario_is_named():
    assert months(Nights(5, nights=6), 1, seed=3)[0].red == [False] * 6
    assert share_named(Nights(10, nights=2, broken=1, change=breaking(1)), 3, seed=1, night=2) == 1.0


@pytest.mark.simulation
@pytest.mark.parametrize("day", [0.0, 0.05])
@pytest.mark.parametrize("scenarios", [5, 10, 40])
def test_unchanged_months_are_quiet(scenarios, day):
    found = months(Nights(scenarios, day=day), 50, seed=scenarios)
    assert sum(month.first_reds for month in found) / len(found) <= 1.0
    assert sum(len(month.named) for month in found) / len(found) <= 0.15


@pytest.mark.simulation
@pytest.mark.parametrize("rate", [0.95, 0.98, 0.995])
@pytest.mark.parametrize("scenarios", [3, 10])
def test_months_near_100_percent_are_quiet(scenarios, rate):
    found = months(Nights(scenarios, rates=at(rate)), 50, seed=2)
    assert sum(month.first_reds for month in found) / len(found) <= 1.0


@pytest.mark.simulation
def test_trials_that_are_alike_name_few_scenarios():
    assert false_names(Nights(10, alike=0.1), 60, seed=4) <= 0.6


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("scenarios", "broken", "night", "least"),
    [(10, 1, 1, 0.9), (40, 1, 1, 0.9), (100, 1, 1, 0.88), (20, 10, 2, 0.95)],
)
def test_broken_scenarios_are_named_at_once(scenarios, broken, night, least):
    plan = Nights(scenarios, nights=night, broken=broken, change=breaking(broken))
    assert share_named(plan, 100 if broken == 1 else 30, seed=7, night=night) >= least


@pytest.mark.simulation
def test_two_broken_against_one_run_are_named():
    plan = Nights(10, nights=1, earlier=1, broken=2, change=breaking(2))
    assert share_named(plan, 150, seed=8) >= 0.6


@pytest.mark.simulation
def test_windows_name_what_cannot_be_run_again():
    plan = Nights(40, nights=3, broken=1, change=breaking(1), retests=False)
    assert share_named(plan, 60, seed=9, night=3) >= 0.9


@pytest.mark.simulation
def test_the_first_good_night_after_a_fix_is_rarely_red():
    plan = Nights(40, nights=5, broken=1, change=broken_until(4))
    found = [month for month in months(plan, 60, seed=10) if "0" in month.named]
    assert sum(month.red[4] for month in found) / len(found) <= 0.05


@pytest.mark.simulation
def test_dearer_trials_are_found_by_the_third_night():
    assert dearer_found(20, 3, 1.3, 100, seed=11) >= 0.75
    assert dearer_found(20, 3, 1.0, 100, seed=12) <= 0.08


@pytest.mark.simulation
def test_an_ab_that_breaks_a_scenario_is_found():
    assert arms_found(10, 3, 1, 150, seed=13) >= 0.7
    assert arms_found(10, 3, 0, 150, seed=14) <= 0.05


@pytest.mark.simulation
@pytest.mark.parametrize("trials", [1, 2])
def test_single_trials_after_a_line_of_three_and_hard_scenarios_raise_few_alarms(trials):
    assert uneven_alarms(10, trials, hard=0 if trials == 1 else 4, number=300, seed=15) <= 0.03 + 0.02


@pytest.mark.simulation
@pytest.mark.parametrize(
    "plan",
    [Nights(10), Nights(10, day=0.05), Nights(40), Nights(10, rates=at(0.99)), Nights(5, rates=at(0.95))],
    ids=["10", "10, 5 points", "40", "99 %", "95 %"],
)
def test_runs_lie_where_they_are_expected(plan):
    assert expected_covered(plan, 200, seed=16) >= 0.93 - 2 * 0.017
