"""What fresh trials confirm, and how many it takes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import fisher_exact, permutation_test

from evaluators.confirmation import confirm_measures, design, fewest_trials
from evaluators.measure_change import ComparisonTest, MeasureRule
from evaluators.significance import Arms, sign_flip_p, within_scenario_p, within_values_p
from tests.evaluators.simulated_confirmations import DESIGNS, EARLIER, confirmed_share

PASS = MeasureRule("trial/pass", is_outcome=True)
ERRORS = MeasureRule("interaction/error_rate", better="lower")


def confirm(before, after, rule=PASS):
    return confirm_measures([(rule, before, after)])


def test_one_scenario_is_fishers_one_sided_test():
    (found,) = confirm({"a": [1, 1, 1, 1, 0]}, {"a": [0, 0, 0, 1, 0]})
    expected = fisher_exact([[1, 4], [4, 1]], alternative="less").pvalue
    assert found.p == pytest.approx(expected)
    assert (found.test, found.trials, found.before, found.after) == (
        ComparisonTest.WITHIN_SCENARIOS,
        (5, 5),
        0.8,
        0.2,
    )


def test_eight_differences_are_tested_by_their_signs():
    keys = "abcdefgh"
    (found,) = confirm({key: [1, 1] for key in keys}, {key: [0, 1] for key in keys})
    assert (found.test, found.p, found.confirms) == (ComparisonTest.SIGN_FLIP, 1 / 2**8, True)


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
    ("scenarios", "measures", "fewest"), [(1, 1, 4), (2, 1, 2), (5, 1, 1), (8, 4, 1), (1, 4, 5)]
)
def test_the_fewest_trials_reach_a_verdict(scenarios, measures, fewest):
    assert fewest_trials(scenarios, measures) == fewest
    lost = Arms(fewest, fewest, 0, fewest)
    assert within_scenario_p([lost] * scenarios, "lower") < 0.05 / measures


def test_a_small_suspicion_takes_more_trials_up_to_the_most():
    large, small = (design([(1.0, 6)] * 3, drop, 1_000) for drop in (1.0, 0.2))
    assert large and small
    assert large.trials < small.trials
    assert small.detectable <= 0.2
    limited = design([(1.0, 6)] * 3, 0.2, 5)
    assert limited is not None
    assert (limited.trials, limited.detectable > 0.2) == (5, True)
    assert design([(1.0, 6)], 0.2, 3) is None


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
