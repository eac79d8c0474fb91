"""What change of a pass rate a comparison of two runs can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from evaluators.aggregate import RunAggregate
from evaluators.statistics import student_quantile

POWER = 0.8
"""How often a change of this size is seen."""
ALPHA = 0.05
"""How often one is seen where there is none, two-sided."""
FEWEST_SCENARIOS = 5
"""Scenarios below which their differences say nothing of the whole."""
FEWEST_RUNS = 3
"""Runs below which nothing is known of how scenarios vary between runs."""


@dataclass(frozen=True)
class Spread:
    """How the pass rate of one scenario varies, as variances."""

    trial: float
    """Between trials of one run, the mean over scenarios."""
    run: float
    """Between runs, apart from trials and from what all scenarios share, the mean over scenarios."""


def spread_of(scenarios: Sequence[RunAggregate], whole: RunAggregate) -> Spread:
    """Return how scenarios varied in past runs; `whole` is the suite in the same runs.

    A trial passes or fails, so its variance follows from the scenario's rate: its expectation under Jeffreys' prior,
    which is never 0, as no scenario is known to be certain. The variance between runs is what is left of that of
    the scenarios' rates (method of moments). What all scenarios share is the change that a comparison looks for:
    it is taken out as the two-way analysis of variance does.
    """
    trial = [_binomial(each) for each in scenarios]
    often = [each for each in scenarios if each.runs > 1]
    noise = fmean([_binomial(each) * each.runs / each.n for each in often]) if often else 0.0
    of_rates = fmean([each.between or 0.0 for each in often]) if often else 0.0
    width = len(often)
    apart = (of_rates - (whole.between or 0.0)) * width / (width - 1) if width > 1 else of_rates
    return Spread(fmean(trial), max(0.0, apart - noise))


def _binomial(scenario: RunAggregate) -> float:
    """Return the expected variance of one trial, for a rate of which these trials are known."""
    a, b = scenario.total + 0.5, scenario.n - scenario.total + 0.5
    return a * b / ((a + b) * (a + b + 1))


def smallest_change(spread: Spread, scenarios: int, trials: int) -> float:
    """Return the smallest change of the pass rate, from 0 to 1, that two runs of so many trials each show.

    Runs are compared by the differences of their scenarios, so the variance of the mean difference over n scenarios
    with K trials in either run is (ω² + 2σ²/K) / n, ω² the variance of the difference of a scenario's two rates and
    σ² that of a trial (Miller 2024, Adding Error Bars to Evals, on power analysis). Quantiles are those of Student's t,
    as scenarios are few. Raises `ValueError` below three scenarios.
    """
    variance = (2 * spread.run + 2 * spread.trial / trials) / scenarios
    freedom = scenarios - 1
    return (student_quantile(1 - ALPHA / 2, freedom) + student_quantile(POWER, freedom)) * sqrt(variance)
