"""Simulates judges and people's labels of a sample, and counts how often the calibration is right.

`python -m tests.evaluators.statistics.simulated_judges` prints the tables of docs/statistics.md.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluators.statistics.calibration import Label, allocate, calibrate, corrected_pass_rate, posterior_of

JUDGINGS = 2_000
REPEATS = 1_000


class Judge(NamedTuple):
    """A judge, the share that people pass, and a sample."""

    passing: float
    true_positive: float
    true_negative: float
    labels: int
    is_stratified: bool = True

    def __str__(self) -> str:
        sample = "half/half" if self.is_stratified else "simple"
        return f"{self.passing:.0%} | {self.true_positive} | {self.true_negative} | {self.labels}, {sample}"


JUDGES = (
    *(Judge(0.9, 0.95, 0.9, 120), Judge(0.95, 0.99, 0.5, 120), Judge(0.9, 0.99, 0.5, 80)),
    *(Judge(0.9, 0.97, 0.6, 120), Judge(0.8, 0.95, 0.6, 120), Judge(0.5, 0.9, 0.9, 120)),
    *(Judge(0.5, 0.9, 0.9, 120, False), Judge(0.8, 0.95, 0.8, 200, False)),
    *(Judge(0.5, 0.9, 0.9, 10, False), Judge(0.7, 0.9, 0.8, 20, False), Judge(0.9, 0.95, 0.8, 28, False)),
)


class Covered(NamedTuple):
    """Shares of samples, 0 to 1."""

    true_positive: float
    true_negative: float
    kappa: float
    """Of the samples in which it is defined."""
    criterion: float
    """The true negative rate of a criterion that agrees with the verdict nine times in ten."""
    corrected: float
    """The corrected pass rate of a later run of 200 judgings in which people pass 15 points fewer."""
    known: float
    """A corrected pass rate was given."""
    calibrated: float


Answers = NDArray[np.bool_]
LATER = 200
"""Judgings of the later run."""


class _Bounded(Protocol):
    @property
    def lower(self) -> float: ...
    @property
    def upper(self) -> float: ...


def _contains(interval: _Bounded, truth: float) -> bool:
    return interval.lower <= truth <= interval.upper


def sample(
    rng: np.random.Generator, judge: Judge, person: Answers, verdict: Answers
) -> list[tuple[int, float]]:
    """Return the positions that a round draws, each with its weight."""
    if not judge.is_stratified:
        drawn = rng.choice(len(person), judge.labels, replace=False)
        return [(int(position), len(person) / judge.labels) for position in drawn]
    strata = [np.flatnonzero(verdict), np.flatnonzero(~verdict)]
    sizes = allocate(judge.labels, len(strata[0]), len(strata[1]))
    return [
        (int(position), len(stratum) / size)
        for stratum, size in zip(strata, (sizes.passing, sizes.failing), strict=True)
        for position in rng.choice(stratum, size, replace=False)
    ]


def judged(rng: np.random.Generator, judge: Judge, person: Answers) -> Answers:
    """Return the judge's answers to what people answered so."""
    chance = rng.random(len(person))
    return np.where(person, chance < judge.true_positive, chance >= judge.true_negative)


def labels_of(
    judge: Judge, drawn: list[tuple[int, float]], person: Answers, answer: Answers, verdict: Answers
) -> list[Label]:
    return [
        Label(bool(person[n]), bool(answer[n]), weight, bool(verdict[n]) if judge.is_stratified else None)
        for n, weight in drawn
    ]


def kappa_of(person: Answers, judge: Answers) -> float:
    passing, passed = person.mean(), judge.mean()
    chance = passing * passed + (1 - passing) * (1 - passed)
    return float(((person == judge).mean() - chance) / (1 - chance))


def coverage(judge: Judge, repeats: int = REPEATS) -> Covered:
    """Calibrate the judge with fresh samples, and count what the intervals contain."""
    rng = np.random.default_rng(3)
    hits: list[list[bool]] = [[] for _ in Covered._fields]
    for _ in range(repeats):
        person = rng.random(JUDGINGS) < judge.passing
        verdict = judged(rng, judge, person)
        drawn = sample(rng, judge, person, verdict)
        labels = labels_of(judge, drawn, person, verdict, verdict)
        found = calibrate(labels)
        hits[0].append(_contains(found.true_positive, verdict[person].mean()))
        hits[1].append(_contains(found.true_negative, (~verdict[~person]).mean()))
        if found.kappa is not None:
            hits[2].append(_contains(found.kappa, kappa_of(person, verdict)))
        other = person ^ (rng.random(JUDGINGS) < 0.1)
        answer = verdict ^ (rng.random(JUDGINGS) < 0.1)
        criterion = calibrate(labels_of(judge, drawn, other, answer, verdict), is_verdict=False)
        hits[3].append(_contains(criterion.true_negative, (~answer[~other]).mean()))
        later = rng.random(LATER) < judge.passing - 0.15
        passed = int(judged(rng, judge, later).sum())
        corrected = corrected_pass_rate(found, posterior_of(labels), passed, LATER)
        if corrected is not None:
            hits[4].append(_contains(corrected, judge.passing - 0.15))
        hits[5].append(corrected is not None)
        hits[6].append(found.is_calibrated(30, 0.7))
    return Covered(*(sum(each) / len(each) if each else float("nan") for each in hits))


def main() -> None:
    columns = "person passes | TPR | TNR | labels | TPR covered | TNR covered | kappa covered | criterion's TNR covered"
    print(f"| {columns} | corrected rate covered | corrected rate given | calibrated |")
    print("| --- " * 11 + "|")
    for judge in JUDGES:
        print(f"| {judge} | {' | '.join(f'{share:.1%}' for share in coverage(judge))} |", flush=True)


if __name__ == "__main__":
    main()
