"""Compute what a comparison of a measure can show, on the scale of its differences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import sqrt
from statistics import NormalDist

from evaluators.statistics.measure_change import MeasureRule, Pairs
from evaluators.statistics.measure_variance import has_logarithms, on_scale, trial_variances, within_variance
from evaluators.statistics.power import (
    POWER,
    RELIABLE,
    RateTestLevel,
    expected_rates,
    find_detectable_drop,
    is_found,
    most_power,
    smallest_enough,
)
from evaluators.statistics.significance import t_quantile

MOST_TRIALS = 1_000
"""Don't recommend more trials of each scenario than this."""


class MeasurePower:
    """What the comparison of a measure can show, by its test at the level `alpha` and by the smallest effect.

    Passes have their scenarios' rates. Other values have the variance of trials within their runs, whatever the
    change, and the power of Student's t with the test's degrees of freedom.
    """

    def __init__(self, rule: MeasureRule, pairs: Pairs, alpha: float) -> None:
        self.rule, self.pairs, self.alpha = rule, pairs, alpha
        self.smallest = on_scale(rule.smallest_effect, rule, pairs)
        self.before, self.after = [old.n for old, _ in pairs], [new.n for _, new in pairs]

    @property
    def detectable(self) -> float | None:
        """The smallest difference that is found with `POWER`; None where no difference is."""
        return self.detectable_with(self.before, self.after)

    def detectable_with(self, before: Sequence[int], after: Sequence[int]) -> float | None:
        """Return it for these trials of each scenario instead, as if they varied as the present ones do."""
        if self.rule.is_outcome:
            return find_detectable_drop(self._rates, before, after, self._level)
        error, freedom = self._error(before, after), sum(before) + sum(after) - len(before) - 1
        if freedom < 1:
            return None
        reliably = NormalDist().inv_cdf(POWER)
        return max(_noncentrality(self.alpha, freedom) * error, self.smallest + reliably * error)

    @property
    def most_found(self) -> float | None:
        """The share of comparisons that find the loss of every pass; None for other values."""
        if not self.rule.is_outcome:
            return None
        return most_power(self._rates, self.before, self.after, self._level)

    @property
    def more_trials(self) -> int | None:
        """Trials that each scenario needs beside its own, in both runs, to find `RELIABLE` times the smallest effect.

        None where `MOST_TRIALS` are too few.
        """
        return 0 if self.is_enough() else smallest_enough(self.is_enough, MOST_TRIALS)

    def is_enough(self, more: int = 0) -> bool:
        """Return whether this many more trials of each scenario, in both runs, find that."""
        before, after = [n + more for n in self.before], [n + more for n in self.after]
        wanted = on_scale(RELIABLE * self.rule.smallest_effect, self.rule, self.pairs)
        if self.rule.is_outcome:
            return is_found(self._rates, before, after, wanted, self._level)
        shown = self.detectable_with(before, after)
        return shown is not None and shown <= wanted

    @cached_property
    def _level(self) -> RateTestLevel:
        return RateTestLevel(self.alpha, self.smallest)

    @cached_property
    def _rates(self) -> list[float]:
        """The pass rates that both runs' results come from if nothing changed."""
        passes = [round(old.mean * old.n) + round(new.mean * new.n) for old, new in self.pairs]
        return expected_rates(passes, [old.n + new.n for old, new in self.pairs])

    def _error(self, before: Sequence[int], after: Sequence[int]) -> float:
        rows = zip(self._trial, before, after, strict=True)
        return sqrt(sum(variance * (1 / n + 1 / m) for variance, n, m in rows)) / len(before)

    @cached_property
    def _trial(self) -> list[float]:
        """The variance of one trial of each scenario."""
        scenarios = len(self.pairs)
        if sum(self.before) + sum(self.after) > 2 * scenarios:
            unit = (
                None
                if has_logarithms(self.pairs)
                else sum(abs(old.mean) for old, _ in self.pairs) / scenarios
            )
            return trial_variances(self.rule, self.pairs, unit)
        # Of single trials, all that varies between the scenarios' differences may be the trials'.
        variance = within_variance(self.rule, self.pairs)[0] if scenarios > 1 else 0.0
        return [variance * scenarios / 2] * scenarios


def _noncentrality(alpha: float, freedom: int) -> float:
    """Return how many standard errors a change must be for a two-sided t test to find it with `POWER`."""
    from scipy.special import nctdtrinc

    return float(nctdtrinc(freedom, 1 - POWER, t_quantile(1 - alpha / 2, freedom)))
