"""Confirm a suspected regression with fresh trials: how many it takes, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from evaluators.measure_change import ComparisonTest, MeasureRule
from evaluators.regression import ALPHA, POWER
from evaluators.significance import (
    FEWEST_DIFFERENCES,
    Arms,
    holm,
    jeffreys_variance,
    sign_flip_p,
    t_quantile,
    within_scenario_p,
    within_values_p,
)

MOST_TRIALS = 1_000
"""Don't recommend more fresh trials of each scenario than this."""
_MANY = 1_000_000
"""Degrees of freedom of a normal distribution."""

Values = Mapping[str, Sequence[float]]
"""A measure's value in each trial, by scenario."""


@dataclass(frozen=True)
class FreshTest:
    """A measure over fresh trials, tested one-sided for a change to the worse."""

    measure: str
    scenarios: int
    trials: tuple[int, int]
    """On the old and on the new configuration."""
    before: float
    """The mean of the scenarios' means, as `after`."""
    after: float
    test: ComparisonTest
    p: float
    corrected: float = 1.0
    """p after the correction for all tested measures (Holm)."""

    @property
    def confirms(self) -> bool:
        """Whether the fresh trials prove the regression."""
        return self.corrected < ALPHA


def confirm_measures(measures: Sequence[tuple[MeasureRule, Values, Values]]) -> list[FreshTest]:
    """Return each measure's test on the fresh trials; a measure without a common scenario is left out.

    Takes the values on the old and the new configuration. Only fresh trials may be among those of the new one: the
    trials that raised the suspicion were chosen because they were bad, so they prove nothing.
    """
    found = [
        _tested(rule, _pairs(before, after)) for rule, before, after in measures if _pairs(before, after)
    ]
    corrected = holm([each.p for each in found])
    return [replace(each, corrected=p) for each, p in zip(found, corrected, strict=True)]


def _pairs(before: Values, after: Values) -> list[tuple[Sequence[float], Sequence[float]]]:
    return [(before[key], after[key]) for key in after if after[key] and before.get(key)]


def _tested(rule: MeasureRule, pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> FreshTest:
    means = [(sum(old) / len(old), sum(new) / len(new)) for old, new in pairs]
    sign = -1.0 if rule.better == "lower" else 1.0
    differences = [sign * (new - old) for old, new in means]
    if sum(each != 0 for each in differences) >= FEWEST_DIFFERENCES:
        test, p = ComparisonTest.SIGN_FLIP, sign_flip_p(differences, "lower")
    elif rule.is_outcome:
        arms = [Arms(round(sum(old)), len(old), round(sum(new)), len(new)) for old, new in pairs]
        test, p = ComparisonTest.WITHIN_SCENARIOS, within_scenario_p(arms, "lower")
    else:
        signed = [([sign * each for each in old], [sign * each for each in new]) for old, new in pairs]
        test, p = ComparisonTest.WITHIN_SCENARIOS, within_values_p(signed, "lower")
    return FreshTest(
        rule.name,
        len(pairs),
        (sum(len(old) for old, _ in pairs), sum(len(new) for _, new in pairs)),
        sum(old for old, _ in means) / len(means),
        sum(new for _, new in means) / len(means),
        test,
        p,
    )


@dataclass(frozen=True)
class Design:
    """The fresh trials of a confirmation."""

    trials: int
    """Of each scenario on each configuration."""
    detectable: float
    """The smallest change of the mean, 0 to 1, that they prove four times out of five."""


def fewest_trials(scenarios: int, measures: int = 1) -> int:
    """Return the fewest trials of each scenario with which losing all of them reaches a corrected p below 0.05."""
    return next(n for n in range(1, MOST_TRIALS) if _least_p(scenarios, n) < ALPHA / measures)


def _least_p(scenarios: int, trials: int) -> float:
    lost = Arms(trials, trials, 0, trials)
    return within_scenario_p([lost] * min(scenarios, FEWEST_DIFFERENCES), "lower")


def design(before: Sequence[tuple[float, int]], drop: float, most: int, measures: int = 1) -> Design | None:
    """Return how many fresh trials to run; None if `most` of each scenario can't reach a verdict.

    Takes each affected scenario's mean and trials before, the suspected change from 0 to 1, and how many measures
    are tested. As many trials as it takes to prove the suspected change four times out of five, at most `most`; the
    variance of a mean is that of passes, which no value from 0 to 1 exceeds.
    """
    fewest = fewest_trials(len(before), measures)
    if most < fewest:
        return None
    variance = sum(jeffreys_variance(mean * n, n) for mean, n in before)
    quantiles = t_quantile(1 - ALPHA / measures, _MANY) + t_quantile(POWER, _MANY)
    one = quantiles * sqrt(2 * variance) / len(before)
    trials = next((n for n in range(fewest, most) if one / sqrt(n) <= drop), most)
    return Design(trials, one / sqrt(trials))
