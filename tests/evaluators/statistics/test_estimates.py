"""Totals of runs that are only planned, from made-up histories."""

from random import Random

import pytest

from evaluators.statistics.descriptive import Estimate, RunAggregate, estimate_total, sum_of_estimates


def runs_of(values_by_run):
    """Return a scenario over runs, from the values of its trials in each."""
    means = [sum(values) / len(values) for values in values_by_run]
    within = sum(
        (value - mean) ** 2 for values, mean in zip(values_by_run, means, strict=True) for value in values
    )
    total = sum(map(sum, values_by_run))
    n = sum(map(len, values_by_run))
    return RunAggregate(len(means), n, total, sum(means), sum(mean * mean for mean in means), within)


def whole_of(scenarios):
    """Return a suite over runs, from the trials of each scenario in each run: the means of its scenarios."""
    means = [
        sum(sum(values) / len(values) for values in run) / len(run) for run in zip(*scenarios, strict=True)
    ]
    width = len(scenarios)
    return RunAggregate(
        len(means), width * len(means), width * sum(means), sum(means), sum(mean * mean for mean in means)
    )


def test_each_scenario_costs_what_it_cost():
    scenarios = [[[1.0, 1.2], [0.8, 1.0]], [[3.0], [5.0]]]
    found = estimate_total([runs_of(each) for each in scenarios], whole_of(scenarios), 3)
    assert found.expected == pytest.approx(3 * (1.0 + 4.0))


def test_an_unknown_scenario_costs_the_mean():
    scenarios = [[[1.0], [1.0]], [[3.0], [3.0]]]
    known = [runs_of(each) for each in scenarios]
    assert estimate_total([*known, None], whole_of(scenarios), 1).expected == pytest.approx(6.0)
    assert estimate_total([None, None], whole_of(scenarios), 1).expected == pytest.approx(4.0)


def test_with_one_trial_each_the_interval_is_the_textbooks():
    scenarios = [[[1.0], [2.0], [3.0]]]
    found = estimate_total([runs_of(scenarios[0])], whole_of(scenarios), 1)
    # Mean 2, standard deviation 1, three runs: 4.303 · sqrt(1 + 1/3).
    assert found.half == pytest.approx(4.303 * (4 / 3) ** 0.5, rel=0.01)
    assert found.low == 0.0
    assert found.high == pytest.approx(2.0 + found.half)


def test_two_runs_give_no_interval():
    scenarios = [[[1.0], [2.0]]]
    found = estimate_total([runs_of(scenarios[0])], whole_of(scenarios), 1)
    assert (found.low, found.high) == (None, None)


def test_a_cost_of_zero_has_no_interval():
    scenarios = [[[0.0]] * 5]
    assert estimate_total([runs_of(scenarios[0])], whole_of(scenarios), 1) == Estimate(0.0)


def test_more_trials_reduce_only_trial_noise():
    rng = Random(3)
    scenarios = [[[rng.gauss(1.0, 0.4) for _ in range(3)] for _ in range(20)] for _ in range(10)]
    known, whole = [runs_of(each) for each in scenarios], whole_of(scenarios)
    one, ten = estimate_total(known, whole, 1), estimate_total(known, whole, 10)
    assert ten.half / ten.expected < 0.6 * one.half / one.expected


@pytest.mark.simulation
@pytest.mark.parametrize("drift", [0.0, 0.2], ids=["only trials vary", "runs vary, too"])
@pytest.mark.parametrize("trials", [1, 3, 10])
def test_ninety_five_of_a_hundred_runs_lie_in_the_interval(trials, drift):
    rng = Random(11)

    def trial_values(level, n):
        return [max(0.0, rng.gauss(level, 0.3)) for _ in range(n)]

    inside, repeats = 0, 200
    for _ in range(repeats):
        levels = [rng.uniform(0.8, 2.0) for _ in range(8)]
        shifts = [1 + rng.gauss(0.0, drift) for _ in range(13)]
        past = [[trial_values(level * shift, 3) for shift in shifts[:-1]] for level in levels]
        new = sum(sum(trial_values(level * shifts[-1], trials)) for level in levels)
        found = estimate_total([runs_of(each) for each in past], whole_of(past), trials)
        inside += found.low <= new <= found.high
    assert 0.91 <= inside / repeats <= 0.99


def test_independent_totals_add_up_by_squares():
    assert sum_of_estimates([Estimate(3.0, 3.0), Estimate(4.0, 4.0)]) == Estimate(7.0, 5.0)
    assert sum_of_estimates([Estimate(3.0, 3.0), Estimate(4.0)]) == Estimate(7.0)


def test_runs_add_up():
    first, second = RunAggregate.of([1.0, 2.0]), RunAggregate.of([4.0])
    assert first + second == RunAggregate.of([1.0, 2.0, 4.0])


def test_one_run_has_no_variance():
    assert RunAggregate.of([1.0]).between is None
    assert RunAggregate.of([0.1, 0.1, 0.1]).between == pytest.approx(0.0, abs=1e-15)
