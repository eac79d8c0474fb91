"""What fresh trials confirm, and how many it takes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import boschloo_exact, permutation_test

from evaluators.statistics.confirmation import Suspected, confirm_measures, design, least_trials
from evaluators.statistics.measure_change import ComparisonTest, MeasureRule, Sample
from evaluators.statistics.significance import Arms, sign_flip_p, within_scenario_p, within_values_p
from tests.evaluators.statistics.simulated_confirmations import (
    DESIGNS,
    EARLIER,
    TRUE_CHANGES,
    alerts_of,
    confirmed_share,
)

PASS = MeasureRule("trial/pass", is_outcome=True)
ERRORS = MeasureRule("interaction/error_rate", better="lower")


def confirm(before, after, rule=PASS):
    return confirm_measures([(rule, before, after)])


def test_one_scenario_is_boschloos_one_sided_test():
    (found,) = confirm({"a": [1, 1, 1, 1, 0]}, {"a": [0, 0, 0, 1, 0]})
    expected = boschloo_exact([[1, 4], [4, 1]], alternative="less").pvalue
    assert found.p == pytest.approx(expected)
    assert (found.test, found.trials, found.before, found.after) == (
        ComparisonTest.BOSCHLOO,
        (5, 5),
        0.8,
        0.2,
    )


def test_many_scenarios_are_permuted_within_each_like_few():
    keys = "abcdefghij"
    before, after = {key: [1, 1] for key in keys}, {key: [1, 1] for key in keys} | {"a": [0, 0], "b": [0, 0]}
    (found,) = confirm(before, after)
    arms = [Arms(2, 2, sum(after[key]), 2) for key in keys]
    assert (found.test, found.p) == (
        ComparisonTest.WITHIN_SCENARIOS,
        pytest.approx(within_scenario_p(arms, "lower", mid=True)),
    )
    assert found.confirms
    (scores,) = confirm(before, {key: [0.9, 0.95] for key in keys}, MeasureRule("judge/judge"))
    assert scores.test is ComparisonTest.WITHIN_SCENARIOS


def test_an_improvement_confirms_nothing():
    (found,) = confirm({"a": [0] * 9}, {"a": [1] * 9})
    assert (found.p, found.confirms) == (pytest.approx(1.0), False)


def test_a_rising_error_rate_is_worse():
    before, after = {"a": [0.1, 0.2, 0.1, 0.15, 0.2]}, {"a": [0.6, 0.5, 0.7, 0.8, 0.6]}
    (worse,) = confirm(before, after, ERRORS)
    (better,) = confirm(after, before, ERRORS)
    assert (worse.confirms, better.confirms) == (True, False)
    assert worse.p == pytest.approx(1 / 252, abs=0.003)


def test_measures_are_corrected_together():
    before, after = {"a": [1, 1, 1, 1]}, {"a": [0, 0, 0, 0]}
    one = confirm(before, after)[0]
    two = confirm_measures([(PASS, before, after), (PASS, before, before)])[0]
    assert two.corrected == pytest.approx(2 * one.p)


def test_scenarios_of_one_side_and_without_trials_are_left_out():
    assert confirm({"a": [1], "b": []}, {"b": [1], "c": [0]}) == []


@pytest.mark.parametrize(
    ("scenarios", "measures", "least"), [(1, 1, 3), (2, 1, 2), (5, 1, 1), (8, 4, 1), (1, 4, 4)]
)
def test_the_least_trials_reach_a_verdict(scenarios, measures, least):
    assert least_trials(scenarios, measures) == least
    rule_and_values = (PASS, {"a": [1] * least}, {"a": [0] * least})
    if scenarios == 1:
        assert confirm_measures([rule_and_values] * measures)[0].confirms
        fewer = (PASS, {"a": [1] * (least - 1)}, {"a": [0] * (least - 1)})
        assert not confirm_measures([fewer] * measures)[0].confirms


def suspected(drop, scenarios=3, rule=PASS, sample=None):
    return Suspected(rule, [sample or Sample(6, 1.0)] * scenarios, drop)


def test_a_small_suspicion_takes_more_trials_up_to_the_most():
    large, small = (design(suspected(drop), 1_000) for drop in (1.0, 0.3))
    assert large and small
    assert large.trials < small.trials
    assert small.expected == pytest.approx(0.21)
    assert small.detectable == pytest.approx(0.21, abs=0.02)
    limited = design(suspected(0.3), 5)
    assert limited is not None
    assert (limited.trials, limited.power < 0.5, limited.detectable > 0.21) == (5, True, True)
    assert design(suspected(0.2, scenarios=1), 2) is None


@pytest.mark.parametrize(("scenarios", "drop"), [(1, 0.8), (2, 0.6), (5, 0.5), (12, 0.3)])
def test_a_planned_confirmation_finds_seven_tenths_of_the_drop(scenarios, drop):
    plan = design(suspected(drop, scenarios), 200)
    assert plan is not None
    rng, rate = np.random.default_rng(scenarios), (6 * scenarios + 0.5) / (6 * scenarios + 1)

    def fresh(chance):
        return {
            str(key): (rng.random(plan.trials) < chance).astype(float).tolist() for key in range(scenarios)
        }

    found = sum(confirm(fresh(rate), fresh(rate - 0.7 * drop))[0].confirms for _ in range(300)) / 300
    assert found == pytest.approx(plan.power, abs=0.07)
    assert plan.power >= 0.8


def test_earlier_trials_stand_for_the_old_configuration():
    alone, both = design(suspected(0.4), 100, earlier=[60] * 3), design(suspected(0.4), 100)
    assert alone and both
    assert alone.trials < both.trials
    few = design(suspected(0.4), 100, earlier=[2] * 3)
    assert few and (few.trials, few.power < 0.8) == (100, True)


@pytest.mark.slow
def test_scores_are_planned_by_their_own_variance():
    judge = MeasureRule("judge/judge")
    steady, varied = (design(suspected(0.1, 4, judge, Sample(5, 0.8, 4 * sd**2)), 500) for sd in (0.03, 0.3))
    assert steady and varied
    assert steady.trials < 6 < 50 < varied.trials
    rng = np.random.default_rng(7)

    def fresh(mean):
        return {str(key): rng.normal(mean, 0.3, varied.trials).tolist() for key in range(4)}

    found = sum(confirm(fresh(0.8), fresh(0.73), judge)[0].confirms for _ in range(100)) / 100
    assert found == pytest.approx(0.8, abs=0.12)


def test_one_sided_sign_flips_agree_with_scipy():
    differences = np.random.default_rng(1).normal(-0.3, 1, 10)
    exact = permutation_test(
        (differences,), np.sum, permutation_type="samples", alternative="less", n_resamples=np.inf
    )
    assert sign_flip_p(differences.tolist(), "lower") == pytest.approx(exact.pvalue)


@pytest.mark.parametrize("trials", [(5, 6), (8, 9)], ids=["listed choices", "too many to list"])
@pytest.mark.parametrize(("tail", "alternative"), [("lower", "less"), ("both", "two-sided")])
def test_permuted_values_agree_with_scipy(trials, tail, alternative):
    rng = np.random.default_rng(1)
    before, after = rng.normal(1, 1, trials[0]), rng.normal(0.6, 1, trials[1])
    expected = permutation_test(
        (after, before),
        lambda x, y, axis: np.mean(x, axis) - np.mean(y, axis),
        vectorized=True,
        alternative=alternative,
        n_resamples=np.inf,
    )
    assert within_values_p([(before, after)], tail) == pytest.approx(expected.pvalue, abs=0.015)


def test_scenarios_are_permuted_each_by_itself():
    scenarios = [([0.1, 0.9, 0.3], [0.2, 0.8]), ([5.0, 5.5], [4.5, 5.2, 4.0])]
    sums = [
        np.mean(np.array(pooled)[list(after)]) - np.mean(np.delete(pooled, after))
        for pooled, count in ((a + b, len(b)) for a, b in scenarios)
        for after in combinations(range(5), count)
    ]
    first, second = sums[:10], sums[10:]
    observed = sum(np.mean(b) - np.mean(a) for a, b in scenarios)
    exact = np.mean([x + y <= observed + 1e-9 for x in first for y in second])
    assert within_values_p(scenarios, "lower") == pytest.approx(exact, abs=0.015)


@pytest.mark.simulation
@pytest.mark.parametrize("earlier", [0, EARLIER])
@pytest.mark.parametrize(("scenarios", "trials"), DESIGNS)
def test_no_change_is_rarely_confirmed(scenarios, trials, earlier):
    confirmations = 1_000
    share = confirmed_share(scenarios, trials, earlier=earlier, confirmations=confirmations)
    assert share <= 0.05 + 2.6 * (0.05 * 0.95 / confirmations) ** 0.5


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("change", "least", "most"),
    [
        ("none", 0.0, 0.1),
        ("all −20 points", 0.4, 0.7),
        ("all −30 points", 0.7, 0.95),
        ("two break", 0.85, 1.0),
    ],
)
def test_true_alerts_are_mostly_confirmed(change, least, most):
    became = alerts_of(5, 5, *TRUE_CHANGES[change], alerts=100)
    assert least <= became.confirmed <= most
    assert became.trials <= 100
