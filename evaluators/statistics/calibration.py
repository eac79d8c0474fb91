"""Compare a judge with people: agreement, Cohen's kappa, true positive and true negative rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, sqrt
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from evaluators.statistics.descriptive import Z_95, Interval, wilson
from evaluators.statistics.judge_posterior import (
    CELLS,
    Posterior,
    Stratum,
    draw_population,
    draw_rate,
    interval_of,
)

if TYPE_CHECKING:
    from evaluators.statistics.judge_posterior import Draws


FEWEST_FOR_NORMAL = 30
"""The fewest labels for a normal interval of kappa."""


class Label(Struct, frozen=True):
    """A person's answer and a judge's original answer to the same question."""

    person: bool
    judge: bool
    weight: float = 1.0
    """The inverse of the sampling probability (Horvitz and Thompson 1952)."""
    stratum: bool | None = None
    """The judge's verdict by which it was drawn; None for a simple random sample."""


Sizes = Mapping[bool | None, float]
"""The number of judgings in each stratum from which labels were drawn."""


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


def calibrate(labels: Iterable[Label], sizes: Sizes | None = None, *, is_verdict: bool = True) -> Calibration:
    """Return agreement, kappa and rates of labels drawn at random, weighted by the inverse of their probability.

    Of samples drawn by the judge's verdict, intervals are those of the posterior over strata: a stratum without any
    false answer still may hold some, and each weighs as much as the judgings that it represents. `sizes` are those of
    the strata, by default the sums of the labels' weights. A criterion's answers are not what the samples were drawn
    by, so it isn't the verdict.
    """
    every = list(labels)
    passing = [label for label in every if label.person]
    failing = [label for label in every if not label.person]
    calibration = Calibration(
        len(every),
        len(passing),
        len(failing),
        weighted_rate([(label.person == label.judge, label.weight) for label in every]),
        weighted_rate([(label.judge, label.weight) for label in passing]),
        weighted_rate([(not label.judge, label.weight) for label in failing]),
        cohen_kappa(every),
    )
    is_drawn_by_verdict = any(label.stratum is not None for label in every)
    if not every or not (is_drawn_by_verdict or len(every) < FEWEST_FOR_NORMAL):
        return calibration
    posterior = posterior_of(every, sizes, is_verdict=is_verdict)
    kappa = calibration.kappa and Kappa(
        calibration.kappa.value, *interval_of(posterior.kappa, calibration.kappa.value)
    )
    calibration = replace(calibration, kappa=kappa)
    return _by_strata(calibration, posterior) if is_drawn_by_verdict else calibration


def _by_strata(calibration: Calibration, posterior: Posterior) -> Calibration:
    return replace(
        calibration,
        agreement=_with_interval(calibration.agreement, posterior.agreement),
        true_positive=_with_interval(calibration.true_positive, posterior.true_positive),
        true_negative=_with_interval(calibration.true_negative, posterior.true_negative),
    )


def _with_interval(rate: WeightedRate, draws: Draws) -> WeightedRate:
    if rate.value is None:
        return rate
    lower, upper = interval_of(draws, rate.value)
    return WeightedRate(rate.n, rate.value, lower, upper)


def posterior_of(
    labels: Sequence[Label], sizes: Sizes | None = None, *, is_verdict: bool = True
) -> Posterior:
    """Return draws of the judgings that the labels were drawn from. Raises `ValueError` without labels and sizes."""
    drawn: dict[bool | None, list[Label]] = {each: [] for each in sizes or ()}
    for label in labels:
        drawn.setdefault(label.stratum, []).append(label)
    return draw_population(
        [
            Stratum(
                (sizes or {}).get(key) or sum(label.weight for label in stratum_labels),
                _counts(stratum_labels),
                key if is_verdict else None,
            )
            for key, stratum_labels in drawn.items()
        ]
    )


def _counts(labels: Sequence[Label]) -> dict[tuple[bool, bool], float]:
    """Return the labels by answers; of unequal weights as many as their effective number."""
    if not labels:
        return {}
    total = sum(label.weight for label in labels)
    size = _effective_size([label.weight for label in labels])
    return {
        cell: sum(label.weight for label in labels if (label.person, label.judge) == cell) / total * size
        for cell in CELLS
    }


def corrected_pass_rate(
    calibration: Calibration, posterior: Posterior, passed: int, judged: int
) -> WeightedRate | None:
    """Return the pass rate that people would give, from the judge's passes of so many judgings.

    Rogan and Gladen 1978: (rate + TNR - 1) / (TPR + TNR - 1), within 0 and 1. Its interval has the uncertainty of the
    rate and of both TPR and TNR. None without judgings or labels of both answers, and where the labels don't show the
    judge to be better than chance: the correction then has no bounds.
    """
    true_positive, true_negative = calibration.true_positive.value, calibration.true_negative.value
    if not judged or true_positive is None or true_negative is None:
        return None
    skill = posterior.true_positive + posterior.true_negative - 1
    known = true_positive + true_negative - 1
    if known <= 0 or interval_of(skill, known)[0] <= 0:
        return None
    value = min(1.0, max(0.0, (passed / judged + true_negative - 1) / known))
    draws = (draw_rate(passed, judged) + posterior.true_negative - 1) / skill
    lower, upper = interval_of(draws.clip(0.0, 1.0), value)
    return WeightedRate(judged, value, lower, upper)


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

    Cohen 1960, equations 1 and 7 (large-sample standard error), with the effective sample size of Kish (1965). The
    interval is for 30 labels and more.
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
