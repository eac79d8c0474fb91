"""Simulates scenarios' trials, and counts how often their class is right.

`python -m tests.evaluators.statistics.simulated_classes` prints the table of docs/statistics.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaluators.statistics.scenario_classes import (
    BROKEN_SHARE,
    SOLID_RATE,
    ScenarioClass,
    class_probability,
    classify,
)

SCENARIOS = 20_000
TRIALS = (3, 5, 10, 20)


class Classified(NamedTuple):
    """Shares of scenarios, 0 to 1."""

    sure: float
    """With enough trials for their class."""
    right: float
    """Of these, the true rate is in the class's range."""
    right_otherwise: float
    """Of the others."""
    solid_at_70: float
    """Of those that pass 70 %: solid, and enough trials."""
    flaky_at_97: float
    """Of those that pass 97 %: flaky, and enough trials."""


def _range_of(rate: float) -> ScenarioClass:
    if rate >= SOLID_RATE:
        return ScenarioClass.SOLID
    return ScenarioClass.BROKEN if rate <= BROKEN_SHARE else ScenarioClass.FLAKY


def _outcomes(rng: np.random.Generator, rate: float, trials: int) -> list[str]:
    return ["pass" if passed else "fail" for passed in rng.random(trials) < rate]


def _called(rng: np.random.Generator, rate: float, trials: int, kind: ScenarioClass, scenarios: int) -> float:
    drawn = [_outcomes(rng, rate, trials) for _ in range(scenarios)]
    return sum(classify(each) is kind and class_probability(each).is_enough for each in drawn) / scenarios


def classified(trials: int, scenarios: int = SCENARIOS) -> Classified:
    """Classify scenarios whose true pass rates follow Beta(0.5, 0.5), most near 0 or 1."""
    rng = np.random.default_rng(trials)
    right: dict[bool, list[bool]] = {True: [], False: []}
    for rate in rng.beta(0.5, 0.5, scenarios):
        outcomes = _outcomes(rng, rate, trials)
        right[class_probability(outcomes).is_enough].append(classify(outcomes) is _range_of(rate))
    return Classified(
        len(right[True]) / scenarios,
        float(np.mean(right[True])),
        float(np.mean(right[False])),
        _called(rng, 0.7, trials, ScenarioClass.SOLID, scenarios),
        _called(rng, 0.97, trials, ScenarioClass.FLAKY, scenarios),
    )


def main() -> None:
    print("| trials | sure | right if sure | right otherwise | 70 % called solid | 97 % called flaky |")
    print("| --- | --- | --- | --- | --- | --- |")
    for trials in TRIALS:
        print(f"| {trials} | {' | '.join(f'{share:.0%}' for share in classified(trials))} |", flush=True)


if __name__ == "__main__":
    main()
