"""What a comparison of pass rates can show."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.statistics.power import (
    RateTestLevel,
    can_reach,
    compute_power,
    expected_rates,
    find_detectable_drop,
    is_found,
    most_power,
    smallest_enough,
)
from evaluators.statistics.significance import Arms, boschloo_p, within_scenario_p
from tests.evaluators.statistics.simulated_power import (
    RATES,
    advised_and_found,
    covered,
    planned_and_found,
    promised_and_found,
    score_found,
)

VERDICT = RateTestLevel(0.03, 0.05)


def counted_share(rates, later, before, after, level, repeats=1_000):
    """Return how often the verdict's own test finds a drop, with results that nothing else has drawn."""
    rng, found = np.random.default_rng(99), 0
    for _ in range(repeats):
        old, new = rng.binomial(before, rates), rng.binomial(after, later)
        arms = [Arms(int(a), n, int(b), m) for a, n, b, m in zip(old, before, new, after, strict=True)]
        fall = -sum(each.difference for each in arms) / len(arms)
        p = boschloo_p(arms[0]) if len(arms) == 1 else within_scenario_p(arms, mid=True)
        found += fall > 0 and fall >= level.smallest - 1e-9 and p < level.alpha
    return found / repeats


@pytest.mark.parametrize(
    ("before", "after", "drop"),
    [
        ([10], [10], 0.5),
        ([3] * 3, [3] * 3, 0.6),
        ([5, 5, 4, 3], [5, 4, 4, 5], 0.4),
        ([1] * 12, [1] * 12, 0.6),
        ([20] * 4, [3] * 4, 0.35),
        ([8] * 15, [8] * 15, 0.15),
        ([50] * 10, [4] * 10, 0.18),
    ],
    ids=["one scenario", "few", "missing trials", "single trials", "unequal", "many", "a line of runs"],
)
def test_the_power_is_about_how_often_the_test_finds_it(before, after, drop):
    rates = np.linspace(0.7, 0.95, len(before)).tolist()
    expected = counted_share(rates, [rate - drop for rate in rates], before, after, VERDICT)
    assert compute_power(rates, before, after, drop, VERDICT) == pytest.approx(expected, abs=0.12)


@pytest.mark.parametrize(("scenarios", "trials"), [(1, 12), (3, 4), (5, 5), (10, 3), (20, 10)])
def test_the_detectable_change_is_found_four_times_out_of_five(scenarios, trials):
    rates, arms = np.linspace(0.8, 0.95, scenarios).tolist(), [trials] * scenarios
    change = find_detectable_drop(rates, arms, arms, VERDICT)
    assert change is not None
    assert compute_power(rates, arms, arms, change, VERDICT) == pytest.approx(0.8, abs=0.02)


def test_low_rates_can_only_rise():
    arms = [10] * 6
    assert find_detectable_drop([0.1] * 6, arms, arms, VERDICT) == pytest.approx(
        find_detectable_drop([0.9] * 6, arms, arms, VERDICT)
    )


def test_a_drop_stops_at_nothing():
    # The mean can't fall by more than it is, and the scenario that always failed loses nothing.
    arms = [6] * 3
    change = find_detectable_drop([1.0, 0.0, 1.0], arms, arms, VERDICT)
    assert change is not None
    assert 0.2 < change <= 2 / 3
    assert compute_power([1.0, 0.0, 1.0], arms, arms, 0.9, VERDICT) == compute_power(
        [1.0, 0.0, 1.0], arms, arms, 2 / 3, VERDICT
    )


@pytest.mark.parametrize(
    ("scenarios", "trials", "reaches"),
    [(1, 3, False), (1, 4, True), (2, 1, False), (2, 2, True), (5, 1, False), (6, 1, True)],
)
def test_designs_without_a_verdict_are_known(scenarios, trials, reaches):
    arms = [trials] * scenarios
    assert can_reach(arms, arms, VERDICT) is reaches
    assert (most_power([0.9] * scenarios, arms, arms, VERDICT) > 0) is reaches


def test_a_change_of_the_smallest_effect_is_found_half_of_the_time_at_most():
    arms = [2_000] * 10
    assert compute_power([0.8] * 10, arms, arms, 0.05, VERDICT) == pytest.approx(0.5, abs=0.01)
    assert compute_power([0.8] * 10, arms, arms, 0.075, VERDICT) > 0.99


def test_the_fewest_trials_are_the_first_that_are_enough():
    rates = [0.9] * 8

    def finds(n: int) -> bool:
        return is_found(rates, [n] * 8, [n] * 8, 0.2, VERDICT)

    n = smallest_enough(finds, 100)
    assert n is not None
    assert finds(n)
    assert not finds(n - 1)
    assert smallest_enough(finds, n - 1) is None


def test_expected_rates_vary_as_the_true_ones_do():
    rng = np.random.default_rng(5)
    for a, b in ((8, 1.2), (2.4, 0.6), (50, 10)):
        true = rng.beta(a, b, 2_000)
        rates = expected_rates(rng.binomial(6, true).tolist(), [6] * 2_000)
        assert np.mean(rates) == pytest.approx(true.mean(), abs=0.01)
        assert np.mean([rate * (1 - rate) for rate in rates]) == pytest.approx(
            (true * (1 - true)).mean(), rel=0.06
        )


def test_no_scenario_is_certain():
    assert expected_rates([4], [4]) == [0.9]
    assert expected_rates([6.0] * 3, [6] * 3) == [pytest.approx(18.5 / 19)] * 3


def test_what_could_only_have_been_shown_is_found_four_times_out_of_five():
    promised, found, _ = promised_and_found(5, 5, 5, RATES["0.85 to 1"], 250)
    assert promised is not None
    assert found == pytest.approx(0.8, abs=0.05 + 2 * 0.025)


@pytest.mark.simulation
@pytest.mark.parametrize("span", RATES.values(), ids=RATES)
@pytest.mark.parametrize(
    ("scenarios", "before", "after"),
    [(1, 20, 20), (3, 10, 10), (5, 3, 3), (10, 5, 5), (50, 1, 1), (20, 10, 1)],
)
def test_texts_about_power_hold(scenarios, before, after, span):
    promised, own, whole = promised_and_found(scenarios, before, after, span, 400)
    assert promised is not None
    assert own == pytest.approx(0.8, abs=0.05 + 2 * 0.02)
    assert own - 1e-9 <= whole <= 0.85 + 2 * 0.02


@pytest.mark.simulation
@pytest.mark.parametrize(("scenarios", "trials"), [(4, 5), (5, 5), (10, 3), (20, 3)])
def test_plans_hold(scenarios, trials):
    assert planned_and_found(scenarios, trials, (0.85, 1.0)) == pytest.approx(0.8, abs=0.05 + 2 * 0.02)


@pytest.mark.simulation
@pytest.mark.parametrize(("scenarios", "trials", "smallest"), [(5, 5, 0.05), (10, 3, 0.1), (3, 3, 0.3)])
def test_advised_trials_find_what_they_are_for(scenarios, trials, smallest):
    assert advised_and_found(scenarios, trials, smallest)[1] == pytest.approx(0.8, abs=0.05 + 2 * 0.025)


@pytest.mark.simulation
def test_scores_are_found_and_equivalent():
    assert score_found(10, 3, 0.03)[2] > 0.9
    assert score_found(10, 3, 0.1)[1] == pytest.approx(0.8, abs=0.05 + 2 * 0.02)


@pytest.mark.simulation
@pytest.mark.parametrize("drop", [0.0, 0.2])
@pytest.mark.parametrize("span", RATES.values(), ids=RATES)
@pytest.mark.parametrize(
    ("scenarios", "before", "after"), [(3, 3, 3), (7, 2, 2), (10, 1, 1), (20, 20, 1), (5, 20, 3)]
)
def test_intervals_contain_the_true_change(scenarios, before, after, span, drop):
    assert covered(scenarios, before, after, span, drop, 500) >= 0.93 - 2 * 0.012
