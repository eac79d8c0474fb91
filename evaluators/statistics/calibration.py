"""Compare a judge with people: agreement, Cohen's kappa, true positive and true negative rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from msgspec import Struct

from evalhub.lib.value import Value
from evaluators.statistics.descriptive import Z_95, wilson_interval

FEWEST_FOR_NORMAL = 30
"""The fewest labels for a normal interval of kappa."""


class Label(Struct, frozen=True):
    """A person's answer and a judge's original answer to the same question."""

    person: bool
    judge: bool


@dataclass(frozen=True)
class JudgeRate(Value):
    """A share with its 95 % interval."""

    n: int
    value: float | None = None
    """None without labels."""
    lower: float = 0.0
    upper: float = 1.0


@dataclass(frozen=True)
class Kappa(Value):
    """Agreement beyond chance, -1 to 1, with its 95 % interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Calibration(Value):
    """What the labels of a judge version say."""

    labels: int
    passing: int
    """Labels in which the person's answer is pass."""
    failing: int
    agreement: JudgeRate
    true_positive: JudgeRate
    """How often the judge passes what people pass."""
    true_negative: JudgeRate
    """How often the judge fails what people fail."""
    kappa: Kappa | None = None
    """None below `FEWEST_FOR_NORMAL` labels, and if person or judge gave only one answer, where it is not defined."""

    def is_calibrated(self, labels: int, rate: float) -> bool:
        """Return whether there are enough labels of both answers and both lower bounds reach the rate."""
        enough = min(self.passing, self.failing) >= labels
        return enough and min(self.true_positive.lower, self.true_negative.lower) >= rate


def calibrate(labels: Sequence[Label]) -> Calibration:
    """Return agreement, kappa and rates of labels."""
    passing = [label.judge for label in labels if label.person]
    failing = [not label.judge for label in labels if not label.person]
    return Calibration(
        len(labels),
        len(passing),
        len(failing),
        judge_rate([label.person == label.judge for label in labels]),
        judge_rate(passing),
        judge_rate(failing),
        cohen_kappa(labels) if len(labels) >= FEWEST_FOR_NORMAL else None,
    )


def judge_rate(answers: Sequence[bool]) -> JudgeRate:
    """Return the share of true answers with the interval of Wilson (1927)."""
    if not answers:
        return JudgeRate(0)
    interval = wilson_interval(sum(answers), len(answers))
    return JudgeRate(len(answers), sum(answers) / len(answers), interval.lower, interval.upper)


def cohen_kappa(labels: Sequence[Label]) -> Kappa | None:
    """Return kappa; None where chance alone would always agree.

    Cohen 1960, equations 1 and 7 (large-sample standard error). The interval is for 30 labels and more.
    """
    n = len(labels)
    if not n:
        return None
    person = sum(label.person for label in labels) / n
    judge = sum(label.judge for label in labels) / n
    observed = sum(label.person == label.judge for label in labels) / n
    chance = person * judge + (1 - person) * (1 - judge)
    if 1 - chance < 1e-12:
        return None
    value = (observed - chance) / (1 - chance)
    half = Z_95 * sqrt(observed * (1 - observed) / (n * (1 - chance) ** 2))
    return Kappa(value, max(-1.0, value - half), min(1.0, value + half))


def flip_rate(judgings: Iterable[Sequence[bool]]) -> JudgeRate:
    """Return how often two judgings of the same trial differ, over every pair of a trial, trials weighing the same.

    Takes the answers of each trial; trials judged once are left out. `n` is the number of trials.
    """
    shares = []
    for answers in judgings:
        passed, pairs = sum(answers), len(answers) * (len(answers) - 1) // 2
        if pairs:
            shares.append(passed * (len(answers) - passed) / pairs)
    if not shares:
        return JudgeRate(0)
    value = sum(shares) / len(shares)
    interval = wilson_interval(value * len(shares), len(shares))
    return JudgeRate(len(shares), value, interval.lower, interval.upper)


def missing_labels(have: int, needed: int) -> int:
    """Return how many more labels are needed, not below 0."""
    return max(0, ceil(needed - have))
