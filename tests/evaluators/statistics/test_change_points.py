"""Runs from which a measure changed: constructed series, scipy, ruptures and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaluators.statistics.change_points import ChangePoint, likelihood_ratio_p, mean_changes, rate_changes
from tests.evaluators.statistics.simulated_trends import DETECTORS, drops, false_alarms, false_alarms_under


def positions(changes):
    return [each.at for each in changes]


def test_a_drop_of_a_rate_is_found_at_its_run():
    [change] = rate_changes([27] * 8 + [15] * 4, [30] * 12)
    assert change == ChangePoint(8, pytest.approx(0.9), pytest.approx(0.5))


def test_a_drop_and_its_recovery_are_two_changes():
    changes = rate_changes([27] * 8 + [12] * 8 + [27] * 8, [30] * 24)
    assert positions(changes) == [8, 16]
    assert [round(each.after, 2) for each in changes] == [0.4, 0.9]


def test_trials_weigh_a_rate():
    assert positions(rate_changes([9] * 8 + [7], [10] * 9)) == []
    assert positions(rate_changes([90] * 8 + [70], [100] * 9)) == [8]


def test_equal_rates_have_no_change():
    for passed in (0, 20, 30):
        assert rate_changes([passed] * 12, [30] * 12) == ()


def test_runs_without_trials_change_nothing():
    assert rate_changes([0] * 8, [0] * 8) == ()
    assert positions(rate_changes([27, 0] * 4 + [10] * 4, [30, 0] * 4 + [30] * 4)) in ([7], [8])


@pytest.mark.parametrize("runs", [0, 1, 5])
def test_fewer_than_six_runs_have_no_change(runs):
    assert rate_changes([30, 0, 0, 0, 0][:runs], [30] * runs) == ()
    assert mean_changes([1.0, 9.0, 9.1, 9.0, 9.1][:runs]) == ()


def test_more_passed_than_trials_are_refused():
    with pytest.raises(ValueError, match="between 0 and the trials"):
        rate_changes([31] * 6, [30] * 6)
    with pytest.raises(ValueError, match="between 0 and the trials"):
        rate_changes([3] * 6, [30] * 5)


@pytest.mark.parametrize(("k", "n", "j", "m"), [(27, 30, 15, 30), (200, 240, 20, 30), (1, 40, 9, 80)])
def test_the_likelihood_ratio_is_scipys(k, n, j, m):
    table = [[k, n - k], [j, m - j]]
    expected = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood").pvalue
    assert likelihood_ratio_p(k, n, j, m) == pytest.approx(expected)


def test_a_step_of_a_mean_is_found_with_its_levels():
    values = [4.0, 4.2, 3.9, 4.1, 4.0, 6.1, 5.9, 6.0, 6.2]
    [change] = mean_changes(values)
    assert change.at == 5
    assert (change.before, change.after) == (
        pytest.approx(np.mean(values[:5])),
        pytest.approx(np.mean(values[5:])),
    )


def test_one_unusual_run_is_no_change_of_a_mean():
    assert mean_changes([4.0, 4.2, 3.9, 4.1, 9.0, 4.0, 4.1, 3.9]) == ()


def test_a_constant_mean_has_no_change():
    assert mean_changes([0.1] * 12) == ()


@pytest.mark.parametrize("seed", range(8))
def test_segments_cost_no_more_than_those_of_ruptures(seed):
    # Every process collects this file, but one runs this test.
    import ruptures

    rng = np.random.default_rng(seed)
    values = rng.normal(size=60) + np.repeat(rng.normal(scale=3, size=4), 15)
    noise = float(np.mean(np.diff(values) ** 2) / 2)
    penalty = 3 * np.log(len(values)) * noise
    peers = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(values).predict(pen=penalty)
    ours = [*positions(mean_changes(values.tolist())), len(values)]
    cost = ruptures.costs.CostL2().fit(values)
    assert cost.sum_of_costs(ours) + penalty * len(ours) == pytest.approx(
        cost.sum_of_costs(peers) + penalty * len(peers)
    )


@pytest.mark.simulation
@pytest.mark.parametrize(("name", "most"), [("pass rate", 0.03), ("mean", 0.05)])
def test_stable_runs_have_few_change_points(name, most):
    assert false_alarms(DETECTORS[name]) <= most


def test_a_series_that_drifts_needs_a_larger_step_than_a_steady_one():
    steady, drifting = [270] * 12, [270, 255, 279, 262, 282, 251, 268, 281, 256, 275, 263, 277]
    fallen = [each - 24 for each in drifting[6:]]
    assert positions(rate_changes([*steady[:6], *[246] * 6], [300] * 12)) == [6]
    assert positions(rate_changes([*drifting[:6], *fallen], [300] * 12)) == []
    far = [each - 90 for each in drifting[6:]]
    assert positions(rate_changes([*drifting[:6], *far], [300] * 12)) == [6]


def test_few_seeded_drifting_series_are_marked():
    assert false_alarms_under(300, 0.03, histories=50) <= 0.06


@pytest.mark.simulation
@pytest.mark.parametrize("drift", [0.0, 0.03, 0.05])
@pytest.mark.parametrize("runs", [6, 12, 40])
def test_drifting_series_are_rarely_marked(drift, runs):
    assert false_alarms_under(300, drift, runs) <= 0.035


@pytest.mark.simulation
@pytest.mark.parametrize("name", DETECTORS)
def test_a_drop_of_15_points_is_mostly_found(name):
    assert drops(DETECTORS[name], 0.7, 300).share >= 0.75
    assert drops(DETECTORS[name], 0.55, 300).share >= 0.98
