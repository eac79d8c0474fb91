"""A run against its line: what it finds, what it forgives, and how often it is wrong."""

from __future__ import annotations

import pytest

from evaluators.statistics.line import compare_with_line
from evaluators.statistics.measure_change import ChangeVerdict, ComparisonTest, MeasureRule, Sample, Scale
from evaluators.statistics.regression import overall
from tests.evaluators.statistics.simulated_lines import (
    CHANGES,
    DESIGNS,
    DRIFTS,
    HISTORIES,
    RATES,
    Design,
    Drift,
    false_alarms,
    membership,
    share_found,
)

PASS = MeasureRule("trial/pass", is_outcome=True)
JUDGE = MeasureRule("judge/judge")


def run_of(*passes: int, trials: int = 5) -> dict[str, Sample]:
    return {f"s{place}": Sample(trials, each / trials) for place, each in enumerate(passes)}


def pass_rate(line, new, rule=PASS):
    return compare_with_line([(rule, line, new)]).headline[0]


STEADY = [run_of(5, 4, 5, 5, 4, 5), run_of(5, 5, 4, 5, 5, 4)] * 5


def test_a_fall_of_every_scenario_is_a_regression():
    change = pass_rate(STEADY, run_of(4, 3, 3, 4, 3, 3))
    assert (change.verdict, change.test) == (ChangeVerdict.REGRESSED, ComparisonTest.LINE)
    assert change.trials == (300, 30)
    assert change.runs_before == 10
    assert change.upper is not None
    assert change.upper < 0


def test_the_line_finds_what_one_run_does_not():
    from evaluators.statistics.regression import compare_headline

    new = run_of(4, 3, 4, 4, 3, 4)
    assert compare_headline([(PASS, STEADY[-1], new)])[0].verdict is ChangeVerdict.TOO_LITTLE
    assert pass_rate(STEADY, new).verdict is ChangeVerdict.REGRESSED


def test_a_line_that_drifts_forgives_what_a_steady_one_does_not():
    drifting = [run_of(*[each] * 6) for each in (5, 3, 5, 4, 3, 5, 4, 5, 3, 5)]
    new = run_of(4, 3, 3, 4, 3, 3)
    steady, drifted = pass_rate(STEADY, new), pass_rate(drifting, new)
    assert drifted.verdict is not ChangeVerdict.REGRESSED
    assert drifted.run_to_run > 3 * steady.run_to_run


def test_one_failure_after_a_line_at_100_percent_is_no_regression():
    line = [run_of(3, 3, 3, 3, 3, trials=3)] * 10
    change = pass_rate(line, run_of(3, 3, 2, 3, 3, trials=3))
    assert change.verdict is not ChangeVerdict.REGRESSED
    assert change.lower < change.effect < change.upper


def test_a_scenario_that_loses_three_trials_against_fifty_broke():
    found = compare_with_line([(PASS, STEADY, {**run_of(5, 4, 5, 5, 4, 5), "s0": Sample(3, 0.0)})])
    assert overall(found.headline) is ChangeVerdict.REGRESSED
    assert found.headline[0].broke == ("s0",)
    assert found.scenarios["s0"].trials == (50, 3)


def test_a_scenario_uses_the_runs_that_have_it():
    line = [{key: each for key, each in run.items() if key != "s0"} for run in STEADY[:6]] + STEADY[6:]
    found = compare_with_line([(PASS, line, run_of(5, 5, 5, 5, 5, 5))])
    assert (found.scenarios["s0"].trials, found.scenarios["s0"].runs_before) == ((20, 5), 4)
    assert found.scenarios["s1"].trials == (50, 5)


def test_a_scenario_that_no_run_has_is_left_out():
    found = compare_with_line([(PASS, STEADY, {**run_of(5, 5), "new": Sample(5, 0.0)})])
    assert found.headline[0].scenarios == 2
    assert list(found.scenarios) == ["s0", "s1"]
    alone = pass_rate(STEADY, {"new": Sample(5, 0.0)})
    assert alone.verdict is ChangeVerdict.NOT_COMPARABLE


def test_more_trials_are_those_of_the_new_run():
    steady = [run_of(*[19] * 40, trials=20)] * 10
    change = pass_rate(steady, run_of(*[5] * 40))
    more = change.more_trials
    grown = pass_rate(steady, run_of(*[5 + (more or 0)] * 40, trials=5 + (more or 0)))
    assert grown.detectable == pytest.approx(0.05, abs=0.005)


def test_the_detectable_change_cannot_be_bought_from_a_drifting_line():
    drifting = [run_of(*[each] * 6) for each in (5, 3, 5, 4, 3, 5, 4, 5, 3, 5)]
    assert pass_rate(drifting, run_of(4, 4, 4, 4, 4, 4)).more_trials is None


def test_an_equal_run_of_many_trials_is_equivalent():
    line = [run_of(*[38] * 10, trials=40)] * 10
    assert pass_rate(line, run_of(*[38] * 10, trials=40)).verdict is ChangeVerdict.EQUIVALENT


def scores(mean: float, trials: int = 5) -> dict[str, Sample]:
    return {f"s{place}": Sample(trials, mean + place / 100, 0.0004 * (trials - 1)) for place in range(6)}


def test_scores_are_compared_by_what_they_vary():
    line = [scores(0.8 + step / 1000) for step in range(10)]
    assert pass_rate(line, scores(0.7), JUDGE).verdict is ChangeVerdict.REGRESSED
    assert pass_rate(line, scores(0.79), JUDGE).verdict is ChangeVerdict.SMALL


def test_a_score_that_is_better_when_lower_regresses_upwards():
    line = [scores(0.2 + step / 1000) for step in range(10)]
    errors = MeasureRule("interaction/error_rate", better="lower")
    assert pass_rate(line, scores(0.4), errors).verdict is ChangeVerdict.REGRESSED
    assert pass_rate(line, scores(0.05), errors).verdict is ChangeVerdict.IMPROVED


def test_single_scores_vary_as_between_runs():
    line = [{"s0": Sample(1, each)} for each in (0.8, 0.82, 0.78, 0.81, 0.79, 0.8)]
    assert pass_rate(line, {"s0": Sample(1, 0.4)}, JUDGE).verdict is ChangeVerdict.REGRESSED
    assert pass_rate(line, {"s0": Sample(1, 0.78)}, JUDGE).verdict is not ChangeVerdict.REGRESSED


def test_a_measure_on_the_relative_scale_is_refused():
    with pytest.raises(ValueError, match="trial/cost_usd isn't a measure from 0 to 1"):
        compare_with_line([(MeasureRule("trial/cost_usd", scale=Scale.RELATIVE), STEADY, run_of(5))])


def test_few_seeded_runs_raise_few_alarms():
    drift = DRIFTS["5 points"]
    assert false_alarms(Design(20, (10,), 2), drift, comparisons=60) <= 0.1
    assert share_found(Design(10, (6,), 6), Drift(), CHANGES["all −30 points"], comparisons=20) >= 0.9


@pytest.mark.simulation
@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("design", DESIGNS, ids=lambda each: each.label)
def test_unchanged_runs_are_rarely_called_changed(design, drift):
    # 5 %, and two standard errors of 1,000 comparisons.
    assert false_alarms(design, DRIFTS[drift]) <= 0.064


@pytest.mark.simulation
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("design", [Design(5, (3,), 3), Design(10, (5,), 5), Design(20, (10,), 2)])
def test_unchanged_runs_at_the_ceiling_are_rarely_called_changed(design, rates):
    assert false_alarms(design, Drift(), RATES[rates]) <= 0.064


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("trials", "drift", "change", "least"),
    [
        (6, Drift(), "all −15 points", 0.68),
        (7, Drift(), "all −15 points", 0.75),
        (5, DRIFTS["5 points"], "one breaks", 0.7),
        (5, DRIFTS["5 points"], "two break", 0.9),
    ],
    ids=["-15, 6 trials", "-15, 7 trials", "one breaks", "two break"],
)
def test_changes_are_found_with_few_trials(trials, drift, change, least):
    assert share_found(Design(10, (trials,), trials), drift, CHANGES[change]) >= least


@pytest.mark.simulation
@pytest.mark.parametrize("history", HISTORIES)
def test_undecided_regressions_stay_red_and_false_ones_stay_rare(history):
    found = membership(*HISTORIES[history])
    assert found.false <= 0.06
    # A drop that two of three runs show is missed by three in a row now and then.
    assert found.red >= 0.75


def test_a_few_seeded_histories_keep_a_drop_red():
    found = membership(10, 5, 0.0, 0.25, histories=4)
    assert found.red == 1.0
    assert found.false <= 0.05
