"""Simulates judges and people's labels of a sample, and counts how often the calibration is right.

`python -m tests.evaluators.statistics.simulated_judges` prints the table of docs/statistics-appendix.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluators.statistics.calibration import JudgeRate, Kappa, Label, calibrate

JUDGINGS = 2_000
REPEATS = 1_000
Answers = NDArray[np.bool_]


class Judge(NamedTuple):
    """A judge, the share that people pass, and the labels of a sample."""

    passing: float
    true_positive: float
    true_negative: float
    labels: int

    def __str__(self) -> str:
        return f"{self.passing:.0%} | {self.true_positive} | {self.true_negative} | {self.labels}"


JUDGES = (
    *(Judge(0.5, 0.9, 0.9, 120), Judge(0.8, 0.95, 0.8, 200), Judge(0.8, 0.95, 0.5, 200)),
    *(Judge(0.5, 0.9, 0.9, 30), Judge(0.7, 0.9, 0.8, 60)),
)


class Covered(NamedTuple):
    """Shares of samples, 0 to 1."""

    true_positive: float
    true_negative: float
    kappa: float
    """Of the samples in which it is defined."""
    calibrated: float


def _contains(interval: JudgeRate | Kappa, truth: float) -> bool:
    return interval.lower <= truth <= interval.upper


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
        chance = rng.random(JUDGINGS)
        verdict = np.where(person, chance < judge.true_positive, chance >= judge.true_negative)
        drawn = rng.choice(JUDGINGS, judge.labels, replace=False)
        found = calibrate([Label(bool(person[n]), bool(verdict[n])) for n in drawn])
        hits[0].append(_contains(found.true_positive, verdict[person].mean()))
        hits[1].append(_contains(found.true_negative, (~verdict[~person]).mean()))
        if found.kappa is not None:
            hits[2].append(_contains(found.kappa, kappa_of(person, verdict)))
        hits[3].append(found.is_calibrated(30, 0.7))
    return Covered(*(sum(each) / len(each) if each else float("nan") for each in hits))


def main() -> None:
    print("| person passes | TPR | TNR | labels | TPR covered | TNR covered | kappa covered | calibrated |")
    print("| --- " * 8 + "|")
    for judge in JUDGES:
        print(f"| {judge} | {' | '.join(f'{share:.1%}' for share in coverage(judge))} |", flush=True)


if __name__ == "__main__":
    main()
