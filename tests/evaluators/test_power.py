"""The smallest change of a pass rate that two runs show."""

from math import sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from evaluators.aggregate import RunAggregate
from evaluators.power import Spread, pass_rate_spread, smallest_change


def passes(*by_run, trials):
    """Return a scenario over runs, from how many of its trials passed in each."""
    rates = [each / trials for each in by_run]
    total = float(sum(by_run))
    return RunAggregate(
        len(rates), trials * len(rates), total, sum(rates), sum(rate * rate for rate in rates)
    )


def whole_of(scenarios, trials):
    rates = [fmean(each[run] / trials for each in scenarios) for run in range(len(scenarios[0]))]
    return RunAggregate.of(rates)


@pytest.mark.parametrize(
    ("spread", "scenarios", "trials", "by_hand"),
    [
        # (t of 0.975 + t of 0.8) · sqrt((2 · run + 2 · trial / trials) / scenarios), t from tables.
        (Spread(0.16, 0.0), 20, 3, (2.093 + 0.861) * sqrt(2 * 0.16 / 3 / 20)),
        (Spread(0.16, 0.01), 20, 3, (2.093 + 0.861) * sqrt((0.02 + 2 * 0.16 / 3) / 20)),
        (Spread(0.16, 0.0), 10, 10, (2.262 + 0.883) * sqrt(2 * 0.16 / 10 / 10)),
        (Spread(0.25, 0.0), 100, 1, (1.984 + 0.845) * sqrt(0.5 / 100)),
        # Miller 2024, section 5: with ω² = 1/9 and no noise of trials, 969 questions show 3 points.
        (Spread(0.0, 1 / 18), 969, 1, 0.03),
    ],
)
def test_the_smallest_change_follows_the_formula(spread, scenarios, trials, by_hand):
    assert smallest_change(spread, scenarios, trials) == pytest.approx(by_hand, rel=0.005)


def test_more_trials_do_not_reduce_run_noise():
    assert smallest_change(Spread(0.16, 0.02), 20, 1000) == pytest.approx(
        (2.093 + 0.861) * sqrt(0.04 / 20), rel=0.01
    )


@pytest.mark.simulation
@pytest.mark.parametrize(("scenarios", "trials"), [(5, 3), (10, 3), (20, 1), (20, 3), (30, 5)])
def test_a_change_of_that_size_is_seen_four_times_out_of_five(scenarios, trials):
    rng, change = Random(5), 0.5
    for _ in range(30):
        # Rates about one half, each as far from it as the change that their own variance makes the smallest.
        before, after = 0.5 + change / 2, 0.5 - change / 2
        change = smallest_change(Spread(before * (1 - before), 0.0), scenarios, trials)
    seen, repeats = 0, 600
    critical = {5: 2.776, 10: 2.262, 20: 2.093, 30: 2.045}[scenarios]
    for _ in range(repeats):
        differences = [
            fmean((rng.random() < after) - (rng.random() < before) for _ in range(trials))
            for _ in range(scenarios)
        ]
        spread = stdev(differences)
        seen += spread == 0 or abs(fmean(differences)) / (spread / sqrt(scenarios)) > critical
    assert 0.73 <= seen / repeats <= 0.87


def test_a_scenario_that_always_passed_may_still_fail():
    found = pass_rate_spread([passes(3, 3, 3, trials=3)] * 6, whole_of([(3, 3, 3)] * 6, 3))
    # Beta(9.5, 0.5): 9.5 · 0.5 / (10 · 11).
    assert found.trial == pytest.approx(9.5 * 0.5 / 110)
    assert found.run == 0.0


def test_trial_noise_is_not_run_noise():
    rng = Random(8)
    counts = [[sum(rng.random() < 0.7 for _ in range(5)) for _ in range(20)] for _ in range(30)]
    found = pass_rate_spread([passes(*each, trials=5) for each in counts], whole_of(counts, 5))
    assert found.trial == pytest.approx(0.21, abs=0.02)
    assert found.run < 0.004


def test_scenarios_that_go_their_own_ways_vary_between_runs():
    rng = Random(8)
    # Rates of 0.3 or 0.9 from run to run, each scenario for itself: a variance of 0.09.
    counts = [
        [sum(rng.random() < rate for _ in range(5)) for rate in rng.choices((0.3, 0.9), k=20)]
        for _ in range(40)
    ]
    found = pass_rate_spread([passes(*each, trials=5) for each in counts], whole_of(counts, 5))
    assert found.run == pytest.approx(0.09, abs=0.02)


def test_a_common_change_is_not_scenario_noise():
    counts = [(5, 5, 1, 1)] * 10
    assert pass_rate_spread([passes(*each, trials=5) for each in counts], whole_of(counts, 5)).run == 0.0


def test_one_run_shows_no_run_noise():
    found = pass_rate_spread([passes(2, trials=3)] * 5, whole_of([(2,)] * 5, 3))
    assert found.run == 0.0
    assert found.trial > 0
