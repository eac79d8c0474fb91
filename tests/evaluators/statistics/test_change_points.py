"""Runs from which a measure changed: constructed series, ruptures and simulation."""

from __future__ import annotations

import numpy as np
import pytest

from evaluators.statistics.change_points import find_changes
from tests.evaluators.statistics.simulated_trends import drops, false_alarms


def positions(changes):
    return [each.at for each in changes]


def test_a_drop_and_its_recovery_are_two_changes():
    good, bad = [0.9, 0.88, 0.91, 0.9, 0.89, 0.9], [0.4, 0.42, 0.38, 0.4, 0.41, 0.4]
    changes = find_changes([*good, *bad, *good])
    assert positions(changes) == [6, 12]
    assert [round(each.after, 1) for each in changes] == [0.4, 0.9]


def test_fewer_than_six_runs_have_no_change():
    assert find_changes([0.9, 0.91, 0.2, 0.21, 0.2]) == ()


def test_a_step_of_a_mean_is_found_with_its_levels():
    values = [4.0, 4.2, 3.9, 4.1, 4.0, 6.1, 5.9, 6.0, 6.2]
    [change] = find_changes(values)
    assert change.at == 5
    assert (change.before, change.after) == (
        pytest.approx(np.mean(values[:5])),
        pytest.approx(np.mean(values[5:])),
    )


def test_one_unusual_run_is_no_change_of_a_mean():
    assert find_changes([4.0, 4.2, 3.9, 4.1, 9.0, 4.0, 4.1, 3.9]) == ()


def test_a_constant_mean_has_no_change():
    assert find_changes([0.1] * 12) == ()


@pytest.mark.parametrize("seed", range(8))
def test_segments_cost_no_more_than_those_of_ruptures(seed):
    # Every process collects this file, but one runs this test.
    import ruptures

    rng = np.random.default_rng(seed)
    values = rng.normal(size=60) + np.repeat(rng.normal(scale=3, size=4), 15)
    noise = float(np.mean(np.diff(values) ** 2) / 2)
    penalty = 3 * np.log(len(values)) * noise
    peers = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(values).predict(pen=penalty)
    ours = [*positions(find_changes(values.tolist())), len(values)]
    cost = ruptures.costs.CostL2().fit(values)
    assert cost.sum_of_costs(ours) + penalty * len(ours) == pytest.approx(
        cost.sum_of_costs(peers) + penalty * len(peers)
    )


@pytest.mark.simulation
def test_stable_runs_have_few_marks():
    assert false_alarms() <= 0.05


@pytest.mark.simulation
def test_a_drop_of_15_points_is_mostly_marked():
    assert drops(0.7, 300).share >= 0.75
    assert drops(0.55, 300).share >= 0.98
