"""Shares of trials."""

from __future__ import annotations

import pytest

from runs.results.rates import Rate


@pytest.mark.parametrize(
    ("passed", "n", "chance"),
    [(13, 20, 286 / 1140), (5, 20, 10 / 1140), (3, 3, 1.0), (2, 2, None), (2, 9, 0.0)],
)
def test_it_gives_the_chance_that_three_trials_all_pass(passed, n, chance):
    assert Rate(passed, n).all_of(3) == (None if chance is None else pytest.approx(chance))


def test_its_interval_is_wilsons():
    assert (Rate(36, 58).low, Rate(36, 58).high) == pytest.approx((0.492, 0.734), abs=0.001)
