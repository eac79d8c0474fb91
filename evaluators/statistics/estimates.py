"""Estimate the total cost and time of a planned run from similar runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from evaluators.statistics.aggregate import RunAggregate
from evaluators.statistics.descriptive import student_quantile


@dataclass(frozen=True)
class Estimate:
    """An expected total, in the unit of its measure."""

    expected: float
    half: float | None = None
    """Half the width of the 95 % prediction interval; None with too few runs."""

    @property
    def low(self) -> float | None:
        """The lower end of the interval, never below 0."""
        return None if self.half is None else max(0.0, self.expected - self.half)

    @property
    def high(self) -> float | None:
        """The upper end of the interval."""
        return None if self.half is None else self.expected + self.half

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate times a factor."""
        return Estimate(self.expected * factor, None if self.half is None else self.half * factor)


def estimate_total(scenarios: Sequence[RunAggregate | None], whole: RunAggregate, trials: int) -> Estimate:
    """Return the total of a measure over `trials` trials of each scenario.

    `scenarios` are the planned ones; None is an unknown scenario, which gets the mean of the others. `whole` is
    the suite in the same runs. The interval is a prediction interval for one more run (normal distribution, Hahn
    and Meeker 1991, chapter 4). The variance of a run's mean is the variance between runs plus that of its trials,
    separated by the method of moments (one-way random effects, Searle, Casella and McCulloch 1992, chapter 3), so
    more trials reduce only the part that trials cause.
    """
    known = [each for each in scenarios if each is not None and each.n]
    typical = sum(each.mean for each in known) / len(known) if known else whole.mean_of_runs
    unknown = len(scenarios) - len(known)
    expected = trials * (sum(each.mean for each in known) + unknown * typical)
    share = _half_share(known, whole, len(scenarios) * trials)
    return Estimate(expected, None if share is None else expected * share)


def sum_of_estimates(estimates: Iterable[Estimate]) -> Estimate:
    """Return the sum of independent estimates."""
    parts = list(estimates)
    halves = [each.half for each in parts if each.half is not None]
    whole = len(halves) == len(parts)
    return Estimate(
        sum(each.expected for each in parts), sqrt(sum(half * half for half in halves)) if whole else None
    )


def _half_share(known: Sequence[RunAggregate], whole: RunAggregate, planned: int) -> float | None:
    """Return half of the interval as a share of the total, for `planned` trials."""
    between = whole.between
    # The fewest runs that give an interval.
    if between is None or whole.runs < 3 or whole.mean_of_runs <= 0:
        return None
    variance = _variance_of_next_run(between, known, whole, planned) + between / whole.runs
    return student_quantile(0.975, whole.runs - 1) * sqrt(variance) / whole.mean_of_runs


def _variance_of_next_run(
    between: float, known: Sequence[RunAggregate], whole: RunAggregate, planned: int
) -> float:
    """Return the variance of the mean of one more run of `planned` trials."""
    freedom = sum(each.freedom for each in known)
    if not freedom:
        # One trial per scenario cannot separate trials from runs: keep the larger variance.
        return between
    noise = sum(each.within for each in known) / freedom
    trials_each = sum(each.n for each in known) / sum(each.runs for each in known)
    scenarios = whole.n / whole.runs
    return max(0.0, between - noise / (scenarios * trials_each)) + noise / planned
