"""Compute the smallest change of a pass rate that a comparison of two runs detects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from evaluators.aggregate import RunAggregate
from evaluators.regression import PASS_RATE_SHARE
from evaluators.significance import FEWEST_DIFFERENCES, Arms, boschloo_p, within_scenario_p
from evaluators.statistics import student_quantile

POWER = 0.8
"""The share of comparisons that detect a change of this size."""
ALPHA = 0.05
"""The two-sided error rate without any change."""
FEWEST_SCENARIOS = 5
"""The fewest scenarios for a statement about the suite."""
FEWEST_RUNS = 3
"""The fewest runs that show how scenarios vary between runs."""


@dataclass(frozen=True)
class Spread:
    """Variances of a scenario's pass rate."""

    trial: float
    """Between the trials of one run, as mean over scenarios."""
    run: float
    """Between runs, without the parts of trials and of the whole suite, as mean over scenarios."""


def pass_rate_spread(scenarios: Sequence[RunAggregate], whole: RunAggregate) -> Spread:
    """Return the variances of scenarios in past runs; `whole` is the suite in the same runs.

    The variance of a trial is its expectation under Jeffreys' prior, which is never 0 because no scenario is
    certain to pass or fail. The variance between runs is the rest of the variance of the scenarios' rates (method
    of moments), without the change common to all scenarios, as in a two-way analysis of variance: that change is
    what a comparison looks for.
    """
    trial = [_binomial(each) for each in scenarios]
    repeated = [each for each in scenarios if each.runs > 1]
    noise = fmean([_binomial(each) * each.runs / each.n for each in repeated]) if repeated else 0.0
    of_rates = fmean([each.between or 0.0 for each in repeated]) if repeated else 0.0
    width = len(repeated)
    between = (of_rates - (whole.between or 0.0)) * width / (width - 1) if width > 1 else of_rates
    return Spread(fmean(trial), max(0.0, between - noise))


def _binomial(scenario: RunAggregate) -> float:
    """Return the expected variance of one trial, given the known trials."""
    a, b = scenario.total + 0.5, scenario.n - scenario.total + 0.5
    return a * b / ((a + b) * (a + b + 1))


def smallest_change(spread: Spread, scenarios: int, trials: int) -> float:
    """Return the smallest change of the pass rate, from 0 to 1, that a comparison of two runs detects.

    Runs are compared scenario by scenario. Over n scenarios with K trials in each run, the variance of the mean
    difference is (ω² + 2σ²/K) / n, with ω² for the difference of a scenario's two rates and σ² for a trial (Miller
    2024, Adding Error Bars to Evals, on power analysis). Student's t is used because scenarios are few. Raises `ValueError` below three scenarios.
    """
    variance = (2 * spread.run + 2 * spread.trial / trials) / scenarios
    freedom = scenarios - 1
    return (student_quantile(1 - ALPHA / 2, freedom) + student_quantile(POWER, freedom)) * sqrt(variance)


def can_show_regression(scenarios: int, trials: int) -> bool:
    """Return whether losing every trial of every scenario would be a regression, given as many trials before.

    The smallest reachable p of the pass rate's test must be below its part of the error.
    """
    if scenarios == 0:
        return False
    lost = Arms(trials, trials, 0, trials)
    if scenarios == 1:
        return boschloo_p(lost) < PASS_RATE_SHARE
    return within_scenario_p([lost] * min(scenarios, FEWEST_DIFFERENCES), mid=True) < PASS_RATE_SHARE
