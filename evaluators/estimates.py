"""What a run that is only planned will come to, from runs like it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from evaluators.aggregate import RunAggregate
from evaluators.statistics import student_quantile

FEWEST_RUNS = 3
"""Runs without which nothing is said of how far an estimate may be off."""


@dataclass(frozen=True)
class Estimate:
    """What a total is expected to be, in the unit of its measure."""

    expected: float
    half: float | None = None
    """Half of the 95 % prediction interval; None where too few runs tell it."""

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


def total_of(scenarios: Sequence[RunAggregate | None], whole: RunAggregate, trials: int) -> Estimate:
    """Return the total of a measure over so many trials of each scenario.

    `scenarios` are the planned ones, None for one of which nothing is known, which takes the mean of the rest;
    `whole` is the suite in the same runs. The interval is that of one further run from the same population
    (prediction interval of a normal distribution, Hahn and Meeker 1991, chapter 4): the variance of a run's mean is
    that between runs plus that of its trials, told apart by the method of moments (one-way random effects,
    Searle, Casella and McCulloch 1992, chapter 3), so that more trials narrow only what trials are the reason of.
    """
    known = [each for each in scenarios if each is not None and each.n]
    typical = sum(each.mean for each in known) / len(known) if known else whole.mean_of_runs
    unknown = len(scenarios) - len(known)
    expected = trials * (sum(each.mean for each in known) + unknown * typical)
    share = _half_share(known, whole, len(scenarios) * trials)
    return Estimate(expected, None if share is None else expected * share)


def together(estimates: Iterable[Estimate]) -> Estimate:
    """Return the sum of totals that vary apart from each other."""
    parts = list(estimates)
    halves = [each.half for each in parts if each.half is not None]
    whole = len(halves) == len(parts)
    return Estimate(
        sum(each.expected for each in parts), sqrt(sum(half * half for half in halves)) if whole else None
    )


def _half_share(known: Sequence[RunAggregate], whole: RunAggregate, planned: int) -> float | None:
    """Return half of the interval as a share of the total, for so many planned trials."""
    between = whole.between
    if between is None or whole.runs < FEWEST_RUNS or whole.mean_of_runs <= 0:
        return None
    variance = _of_one_run(between, known, whole, planned) + between / whole.runs
    return student_quantile(0.975, whole.runs - 1) * sqrt(variance) / whole.mean_of_runs


def _of_one_run(between: float, known: Sequence[RunAggregate], whole: RunAggregate, planned: int) -> float:
    """Return the variance of the mean of one further run of so many trials."""
    freedom = sum(each.freedom for each in known)
    if not freedom:
        # One trial of each scenario does not tell trials from runs; as it was is then on the safe side.
        return between
    noise = sum(each.within for each in known) / freedom
    trials_each = sum(each.n for each in known) / sum(each.runs for each in known)
    scenarios = whole.n / whole.runs
    return max(0.0, between - noise / (scenarios * trials_each)) + noise / planned
