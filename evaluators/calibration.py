"""Compare a judge with people: agreement, Cohen's kappa, true positive and true negative rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, sqrt

from msgspec import Struct

from evaluators.statistics import Z_95, Interval, wilson


class Label(Struct, frozen=True):
    """A person's answer and a judge's original answer to the same question."""

    person: bool
    judge: bool
    weight: float = 1.0
    """The inverse of the sampling probability (Horvitz and Thompson 1952)."""


class WeightedRate(Struct, frozen=True):
    """A weighted share with its 95 % interval."""

    n: int
    """Labels, not weighted."""
    value: float | None = None
    """None without labels."""
    lower: float = 0.0
    upper: float = 1.0


class Kappa(Struct, frozen=True):
    """Agreement beyond chance, -1 to 1, with its 95 % interval."""

    value: float
    lower: float
    upper: float


class Calibration(Struct, frozen=True):
    """What the labels of a judge version say."""

    labels: int
    passing: int
    """Labels in which the person's answer is pass."""
    failing: int
    agreement: WeightedRate
    true_positive: WeightedRate
    """How often the judge passes what people pass."""
    true_negative: WeightedRate
    """How often the judge fails what people fail."""
    kappa: Kappa | None = None
    """None if person or judge gave only one answer, where it is not defined."""

    def is_calibrated(self, labels: int, rate: float) -> bool:
        """Return whether there are enough labels of both answers and both lower bounds reach the rate."""
        enough = min(self.passing, self.failing) >= labels
        return enough and min(self.true_positive.lower, self.true_negative.lower) >= rate


def calibrate(labels: Iterable[Label]) -> Calibration:
    """Return agreement, kappa and rates of labels drawn at random, weighted by the inverse of their probability."""
    every = list(labels)
    passing = [label for label in every if label.person]
    failing = [label for label in every if not label.person]
    return Calibration(
        len(every),
        len(passing),
        len(failing),
        weighted_rate([(label.person == label.judge, label.weight) for label in every]),
        weighted_rate([(label.judge, label.weight) for label in passing]),
        weighted_rate([(not label.judge, label.weight) for label in failing]),
        cohen_kappa(every),
    )


def weighted_rate(answers: Sequence[tuple[bool, float]]) -> WeightedRate:
    """Return the weighted share of true answers.

    Its interval is Wilson's (1927) at the effective sample size of Kish (1965): the squared sum of the weights over
    the sum of their squares, which is the number of labels where all weights are equal.
    """
    if not answers:
        return WeightedRate(0)
    total = sum(weight for _, weight in answers)
    value = min(1.0, sum(weight for answer, weight in answers if answer) / total)
    size = _effective_size([weight for _, weight in answers])
    interval: Interval = wilson(value * size, size)
    return WeightedRate(len(answers), value, interval.lower, interval.upper)


def cohen_kappa(labels: Sequence[Label]) -> Kappa | None:
    """Return kappa over weighted labels; None where chance alone would always agree.

    Cohen 1960, equations 1 and 7 (large-sample standard error), with the effective sample size of Kish (1965).
    """
    total = sum(label.weight for label in labels)
    if not total:
        return None
    person = sum(label.weight for label in labels if label.person) / total
    judge = sum(label.weight for label in labels if label.judge) / total
    observed = sum(label.weight for label in labels if label.person == label.judge) / total
    chance = person * judge + (1 - person) * (1 - judge)
    if 1 - chance < 1e-12:
        return None
    value = (observed - chance) / (1 - chance)
    size = _effective_size([label.weight for label in labels])
    half = Z_95 * sqrt(max(0.0, observed * (1 - observed)) / (size * (1 - chance) ** 2))
    return Kappa(value, max(-1.0, value - half), min(1.0, value + half))


def _effective_size(weights: Sequence[float]) -> float:
    return sum(weights) ** 2 / sum(weight * weight for weight in weights)


def flip_rate(judgings: Iterable[Sequence[bool]]) -> WeightedRate:
    """Return how often two judgings of the same trial differ, over every pair of a trial, trials weighing the same.

    Takes the answers of each trial; trials judged once are left out. `n` is the number of trials.
    """
    shares = []
    for answers in judgings:
        passed, pairs = sum(answers), len(answers) * (len(answers) - 1) // 2
        if pairs:
            shares.append(passed * (len(answers) - passed) / pairs)
    if not shares:
        return WeightedRate(0)
    value = sum(shares) / len(shares)
    interval = wilson(value * len(shares), len(shares))
    return WeightedRate(len(shares), value, interval.lower, interval.upper)


class Sampled(Struct, frozen=True):
    """How many to draw of those that a judge passed and of those that it failed."""

    passing: int
    failing: int


def allocate(n: int, passing: int, failing: int) -> Sampled:
    """Return a stratified sample of n: half of each answer, and more of one if the other has too few."""
    fails = min(failing, n // 2)
    passes = min(passing, n - fails)
    return Sampled(passes, min(failing, n - passes))


def missing_labels(have: int, needed: int) -> int:
    """Return how many more labels are needed, not below 0."""
    return max(0, ceil(needed - have))
