"""Uneven and missing trials, rates near 0 and 1, and costs with heavy tails raise few false alarms."""

from __future__ import annotations

import pytest

from tests.evaluators.statistics.simulated_uneven_runs import (
    COSTS,
    RATES,
    TAILS,
    UNEVEN,
    cost_alarms,
    uneven_alarms,
)

COMPARISONS = 300
MOST = 0.05 + 2 * (0.05 * 0.95 / COMPARISONS) ** 0.5
"""5 %, and two standard errors of so many comparisons."""


@pytest.mark.simulation
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("design", UNEVEN)
def test_uneven_runs_raise_few_false_alarms(design: str, rates: str) -> None:
    assert uneven_alarms(design, rates, COMPARISONS) <= MOST


@pytest.mark.simulation
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("design", COSTS)
def test_costs_with_heavy_tails_raise_few_false_alarms(design: tuple[int, int, int], tail: float) -> None:
    assert cost_alarms(design, tail, COMPARISONS) <= MOST
