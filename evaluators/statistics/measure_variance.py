"""Compute a measure's differences between two runs, and how much of them trials alone cause."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, log1p

from evaluators.statistics.measure_change import MeasureRule, Pairs, Sample, Scale
from evaluators.statistics.power import expected_rates
from evaluators.statistics.significance import jeffreys_variance, mean_and_error


def differences_of(rule: MeasureRule, pairs: Pairs) -> list[float]:
    """Return each scenario's difference: of logarithms on the relative scale.

    Logarithms need positive values. Where there is a 0, the differences are shares of the mean before.
    """
    if rule.scale is Scale.POINTS:
        return [new.mean - old.mean for old, new in pairs]
    if has_logarithms(pairs):
        return [log(new.mean / old.mean) for old, new in pairs]
    unit = sum(abs(old.mean) for old, _ in pairs) / len(pairs) or 1.0
    return [(new.mean - old.mean) / unit for old, new in pairs]


def has_logarithms(pairs: Pairs) -> bool:
    """Return whether every scenario's mean is positive on both sides."""
    return all(old.mean > 0 and new.mean > 0 for old, new in pairs)


def within_variance(rule: MeasureRule, pairs: Pairs) -> tuple[float, int]:
    """Return the variance of the mean difference that comes from trials, and its degrees of freedom."""
    if rule.is_outcome:
        sides = ([old for old, _ in pairs], [new for _, new in pairs])
        # Degrees of freedom of a normal distribution.
        return sum(map(_variance_of_passes, sides)) / len(pairs) ** 2, 1_000_000
    unit = None if has_logarithms(pairs) else sum(abs(old.mean) for old, _ in pairs) / len(pairs)
    freedom = sum(old.n + new.n - 2 for old, new in pairs)
    if freedom < 1 and len(pairs) > 1:
        # Single trials vary only between scenarios.
        return mean_and_error(differences_of(rule, pairs))[1] ** 2, len(pairs) - 1
    trial = trial_variances(rule, pairs, unit)
    rows = zip(trial, pairs, strict=True)
    return sum(variance * (1 / old.n + 1 / new.n) for variance, (old, new) in rows) / len(pairs) ** 2, freedom


def _variance_of_passes(side: Sequence[Sample]) -> float:
    """Return the variance of the sum of a side's pass rates that comes from trials; never 0.

    A trial varies by its scenario's expected rate, and in part by the rate of all, as if four trials said nothing of
    the scenarios, two of which passed (Agresti and Coull 1998): few trials that end alike don't prove that they must.
    """
    passes, trials = [round(each.mean * each.n) for each in side], [each.n for each in side]
    count = sum(trials)
    common, part = (sum(passes) + 1) / (count + 2), min(1.0, 4 / (count + 2))
    of_scenarios = sum(
        rate * (1 - rate) / n for rate, n in zip(expected_rates(passes, trials), trials, strict=True)
    )
    of_all = sum(common * (1 - common) / n for n in trials)
    return ((1 - part) * of_scenarios + part * of_all) * (1 + 2 / count)


def cautious_variance(rule: MeasureRule, pairs: Pairs) -> float:
    """Return the variance of the mean difference for the claim that nothing changed.

    That of passes is Jeffreys' of each scenario by itself: that all others passed, too, proves nothing about it.
    """
    if not rule.is_outcome:
        return within_variance(rule, pairs)[0]
    variances = (
        jeffreys_variance(round(old.mean * old.n) + round(new.mean * new.n), old.n + new.n)
        * (1 / old.n + 1 / new.n)
        for old, new in pairs
    )
    return sum(variances) / len(pairs) ** 2


def on_scale(effect: float, rule: MeasureRule, pairs: Pairs) -> float:
    """Return an effect, such as the smallest of interest, on the scale of the differences."""
    return log1p(effect) if rule.scale is Scale.RELATIVE and has_logarithms(pairs) else effect


def trial_variances(rule: MeasureRule, pairs: Pairs, unit: float | None) -> list[float]:
    """Return the variance of one trial of each scenario on the scale of the differences, for values other than passes.

    They vary as those of all scenarios do within their runs, because few trials of one say little. On the relative scale that is divided by the squared unit, which for logarithms is the mean of
    each scenario (delta method).
    """
    freedom = sum(old.n + new.n - 2 for old, new in pairs)
    if freedom < 1:
        return [0.0] * len(pairs)
    units = [unit if unit and rule.scale is Scale.RELATIVE else 1.0] * len(pairs)
    if rule.scale is Scale.RELATIVE and unit is None:
        units = [(old.mean * old.n + new.mean * new.n) / (old.n + new.n) for old, new in pairs]
    squares = sum((old.m2 + new.m2) / own**2 for (old, new), own in zip(pairs, units, strict=True))
    # One more value, as far off as the smallest effect: equal values of few trials don't mean that nothing varies.
    return [(squares + rule.smallest_effect**2) / (freedom + 1)] * len(pairs)
