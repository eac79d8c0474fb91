"""Confirm a suspected regression with fresh trials: how many it takes, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean

from evaluators.statistics.error_shares import ALPHA
from evaluators.statistics.measure_change import ComparisonTest, MeasureRule, Sample
from evaluators.statistics.power import (
    POWER,
    RateTestLevel,
    can_reach,
    detectable,
    expected_rates,
    power,
    smallest_enough,
)
from evaluators.statistics.significance import (
    Arms,
    boschloo_p,
    holm,
    jeffreys_variance,
    within_scenario_p,
    within_values_p,
)

SHRUNKEN = 0.7
"""The part of a suspected drop that a confirmation expects: what raised a suspicion was chosen because it was bad."""
CONCLUSIVE = 0.75
"""Fresh trials that find the expected drop more rarely than this show nothing by not finding it."""
MOST_TRIALS = 1_000
"""Don't recommend more fresh trials of each scenario than this."""

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
    power: float | None = None
    """The share of cases in which such trials confirm the expected change; None if unknown."""

    @property
    def confirms(self) -> bool:
        """Whether the fresh trials prove the regression."""
        return self.corrected < ALPHA


def confirm_measures(measures: Sequence[tuple[MeasureRule, Values, Values]]) -> list[FreshTest]:
    """Return each measure's test on the fresh trials; a measure without a common scenario is left out.

    Takes the values on the old and the new configuration. Only fresh trials may be among those of the new one: the
    trials that raised the suspicion were chosen because they were bad, so they prove nothing.
    """
    tests = [
        _test_measure(rule, _pairs(before, after))
        for rule, before, after in measures
        if _pairs(before, after)
    ]
    corrected = holm([each.p for each in tests])
    return [replace(each, corrected=p) for each, p in zip(tests, corrected, strict=True)]


def _pairs(before: Values, after: Values) -> list[tuple[Sequence[float], Sequence[float]]]:
    return [(before[key], after[key]) for key in after if after[key] and before.get(key)]


def _test_measure(rule: MeasureRule, pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> FreshTest:
    means = [(sum(old) / len(old), sum(new) / len(new)) for old, new in pairs]
    sign = -1.0 if rule.better == "lower" else 1.0
    arms = [
        Arms(round(sum(old)), len(old), round(sum(new)), len(new)) for old, new in pairs if rule.is_outcome
    ]
    if len(arms) == 1:
        test, p = ComparisonTest.BOSCHLOO, boschloo_p(arms[0], "lower")
    elif arms:
        test, p = ComparisonTest.WITHIN_SCENARIOS, within_scenario_p(arms, "lower", mid=True)
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
class Suspected:
    """A change to the worse that fresh trials are to confirm."""

    rule: MeasureRule
    before: Sequence[Sample]
    """The affected scenarios in the baseline."""
    drop: float
    """By how much their mean got worse, 0 to 1."""
    measures: int = 1
    """How many measures are tested together."""

    @property
    def expected(self) -> float:
        """The drop that the fresh trials are planned for."""
        return SHRUNKEN * self.drop

    def power(self, before: Sequence[int], after: Sequence[int]) -> float:
        """Return in which share of cases such fresh trials of the scenarios confirm the expected drop."""
        if self.rule.is_outcome:
            return power(self._rates, before, after, self.expected, self._level)
        return _t_power(self.expected / self._error(before, after), *self._t(before, after))

    def detectable(self, before: Sequence[int], after: Sequence[int]) -> float | None:
        """Return the smallest drop that they confirm with `POWER`; None where none is."""
        if self.rule.is_outcome:
            return detectable(self._rates, before, after, self._level)
        return _t_shift(*self._t(before, after)) * self._error(before, after)

    @property
    def _level(self) -> RateTestLevel:
        return RateTestLevel(ALPHA / self.measures)

    @property
    def _rates(self) -> list[float]:
        return expected_rates([each.mean * each.n for each in self.before], [each.n for each in self.before])

    def _t(self, before: Sequence[int], after: Sequence[int]) -> tuple[float, int]:
        return self._level.alpha, max(1, sum(before) + sum(after) - len(before) - 1)

    def _error(self, before: Sequence[int], after: Sequence[int]) -> float:
        """Return the standard error of the mean difference of values, with the variance of the baseline's trials."""
        freedom = sum(each.n - 1 for each in self.before)
        if freedom:
            variance = (sum(each.m2 for each in self.before) + self.rule.smallest**2) / (freedom + 1)
        else:
            # Of single trials nothing says how much they vary; no value from 0 to 1 varies more than passes.
            variance = fmean(jeffreys_variance(each.mean * each.n, each.n) for each in self.before)
        return sqrt(variance * sum(1 / n + 1 / m for n, m in zip(before, after, strict=True))) / len(before)


def _t_power(shift: float, alpha: float, freedom: int) -> float:
    from scipy.special import nctdtr, stdtrit

    return 1.0 - float(nctdtr(freedom, shift, stdtrit(freedom, 1 - alpha)))


def _t_shift(alpha: float, freedom: int) -> float:
    from scipy.special import nctdtrinc, stdtrit

    return float(nctdtrinc(freedom, 1 - POWER, stdtrit(freedom, 1 - alpha)))


@dataclass(frozen=True)
class Design:
    """The fresh trials of a confirmation."""

    trials: int
    """Of each scenario on each configuration."""
    expected: float
    """The drop of the mean that they are planned for, 0 to 1."""
    power: float
    """The share of cases in which they confirm it."""
    detectable: float | None
    """The smallest drop that they confirm four times out of five; None where none is."""


def least_trials(scenarios: int, measures: int = 1) -> int:
    """Return the fewest trials of each scenario with which losing all of them reaches a corrected p below 0.05."""
    level = RateTestLevel(ALPHA / measures)
    return next(n for n in range(1, MOST_TRIALS) if can_reach([n] * scenarios, [n] * scenarios, level))


def design(suspected: Suspected, most: int, earlier: Sequence[int] | None = None) -> Design | None:
    """Return how many fresh trials to run; None if `most` of each scenario can't reach a verdict.

    As many as confirm the expected drop four times out of five, at most `most`. `earlier`: each scenario's earlier
    trials, where these stand for fresh ones of the old configuration.
    """
    fewest = least_trials(len(suspected.before), suspected.measures)
    if most < fewest:
        return None

    def sides(n: int) -> tuple[Sequence[int], list[int]]:
        fresh = [n] * len(suspected.before)
        return earlier or fresh, fresh

    needed = smallest_enough(lambda n: suspected.power(*sides(n)) >= POWER, most)
    trials = max(fewest, needed or most)
    return Design(
        trials, suspected.expected, suspected.power(*sides(trials)), suspected.detectable(*sides(trials))
    )
