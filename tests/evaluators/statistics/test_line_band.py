"""Where the next run of a line is expected."""

from __future__ import annotations

import random

import pytest

from evaluators.statistics.line_band import expected_band


def test_fewer_than_three_runs_expect_nothing():
    assert expected_band([(9, 10), (8, 10)], 10) is None
    assert expected_band([(9, 10), (8, 10), (0, 0)], 10) is None
    assert expected_band([(9, 10)] * 3, 0) is None


def test_a_line_without_failures_expects_few():
    low, high = expected_band([(20, 20)] * 5, 20)
    assert (low, high) == (0.95, 1.0)


def test_runs_that_vary_widen_the_band():
    steady, varying = [(16, 20)] * 6, [(20, 20), (12, 20)] * 3
    narrow, wide = expected_band(steady, 20), expected_band(varying, 20)
    assert wide.low < narrow.low and wide.high >= narrow.high


def test_many_trials_are_scaled_down():
    exact, scaled = (expected_band([(8 * n, 10 * n)] * 5, 10 * n) for n in (40, 400))
    assert scaled.low > exact.low - 0.01 and scaled.high < exact.high + 0.01


@pytest.mark.simulation
@pytest.mark.parametrize(("spread", "least"), [(0.0, 0.94), (0.05, 0.9)])
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_most_next_runs_lie_within(rate, spread, least):
    """Of 1,000 lines of five runs, whose chances vary from run to run."""
    draw = random.Random(7)

    def run():
        chance = min(1.0, max(0.0, draw.gauss(rate, spread)))
        return sum(draw.random() < chance for _ in range(20)), 20

    within = 0
    for _ in range(1_000):
        band = expected_band([run() for _ in range(5)], 20)
        within += band.low <= run()[0] / 20 <= band.high
    assert within / 1_000 >= least
