"""Compare the measures of two runs scenario by scenario and name each change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil, expm1, log, log1p, sqrt

from evaluators.measure_change import (
    ChangeVerdict,
    ComparisonTest,
    MeasureChange,
    MeasureRule,
    Pairs,
    Sample,
    Scale,
)
from evaluators.significance import (
    FEWEST_DIFFERENCES,
    Arms,
    benjamini_hochberg,
    boschloo_p,
    cliffs_delta,
    holm,
    jeffreys_variance,
    mcnemar_p,
    mean_and_error,
    sign_flip_p,
    t_interval,
    t_quantile,
    within_scenario_p,
)
from evaluators.statistics import mean_difference

ALPHA = 0.05
"""The share of false alarms over all headline measures together."""
POWER = 0.8
"""The share of comparisons that find a change of the detectable size."""
CONFIDENCE = 0.95
FEWEST_FOR_EQUIVALENCE = 10
"""The fewest scenarios of which runs can be called equivalent."""
FEWEST_TRIALS = 5
"""The fewest trials on each side for a test of one scenario."""
MOST_TRIALS = 1_000
"""More trials of each scenario than this are no advice."""


def compare_measures(
    measures: Sequence[tuple[MeasureRule, Mapping[str, Sample], Mapping[str, Sample]]],
    correction: Callable[[Sequence[float]], list[float]] = holm,
) -> list[MeasureChange]:
    """Return each measure's change, corrected for all of them together.

    Takes each measure's samples before and after by scenario; only scenarios that can be compared may be among
    them. A scenario that one side lacks is left out.
    """
    changes = [_tested(rule, _pairs(before, after)) for rule, before, after in measures]
    tested = [change for change in changes if change.p is not None]
    corrected = iter(correction([change.p for change in tested if change.p is not None]))
    family = max(1, len(tested))
    return [
        _judged(change, _pairs(before, after), next(corrected) if change.p is not None else None, family)
        for change, (_, before, after) in zip(changes, measures, strict=True)
    ]


def compare_scenarios(
    rule: MeasureRule, before: Mapping[str, Sample], after: Mapping[str, Sample]
) -> dict[str, MeasureChange]:
    """Return the change of each scenario's pass rate, corrected over all of them (Benjamini and Hochberg).

    A scenario with fewer than `FEWEST_TRIALS` on a side has too little data.
    """
    changes = {key: _tested(rule, [(before[key], after[key])]) for key in after if key in before}
    tested = [key for key, change in changes.items() if change.p is not None]
    corrected = benjamini_hochberg([changes[key].p or 0.0 for key in tested])
    by_key = dict(zip(tested, corrected, strict=True))
    return {
        key: _judged(change, [(before[key], after[key])], by_key.get(key), max(1, len(tested)))
        for key, change in changes.items()
    }


def overall(changes: Sequence[MeasureChange]) -> ChangeVerdict:
    """Return the verdict of a whole comparison from its headline measures, the pass rate first.

    Regressed where any regressed, else improved where any improved, else the verdict of the first measure.
    """
    verdicts = [change.verdict for change in changes]
    for verdict in (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED):
        if verdict in verdicts:
            return verdict
    return verdicts[0] if verdicts else ChangeVerdict.NOT_COMPARABLE


def detectable_with(
    change: MeasureChange,
    before: Mapping[str, Sample],
    after: Mapping[str, Sample],
    trials: int,
    keys: Collection[str],
) -> float | None:
    """Return the effect of a measure from 0 to 1 that a comparison finds with more trials of some scenarios.

    More trials reduce only the part of the variance that trials cause; None without a test.
    """
    pairs = _pairs(before, after)
    if change.detectable is None or not pairs:
        return None
    shared = [key for key in after if key in before]
    grown = [
        (old._replace(n=old.n + trials), new._replace(n=new.n + trials)) if key in keys else (old, new)
        for key, (old, new) in zip(shared, pairs, strict=True)
    ]
    power = _Power(change, pairs, _differences(change.rule, pairs), 1)
    return change.detectable * power.factor(grown)


def _pairs(before: Mapping[str, Sample], after: Mapping[str, Sample]) -> Pairs:
    return [(before[key], after[key]) for key in after if key in before]


def _tested(rule: MeasureRule, pairs: Pairs) -> MeasureChange:
    """Return a change with its sizes and its p, before any correction."""
    if not pairs:
        return MeasureChange(rule, ChangeVerdict.NOT_COMPARABLE, 0)
    differences = _differences(rule, pairs)
    test, p = _test(rule, pairs, differences)
    effect = _shown(rule, pairs, sum(differences) / len(differences))
    lower, upper = _interval(rule, pairs, differences, test)
    sign = -1.0 if rule.better == "lower" else 1.0
    return MeasureChange(
        rule,
        ChangeVerdict.TOO_LITTLE,
        len(pairs),
        (sum(old.n for old, _ in pairs), sum(new.n for _, new in pairs)),
        before=sum(old.mean for old, _ in pairs) / len(pairs),
        after=sum(new.mean for _, new in pairs) / len(pairs),
        worse=sum(sign * each < 0 for each in differences),
        better=sum(sign * each > 0 for each in differences),
        effect=effect,
        lower=lower,
        upper=upper,
        test=test,
        p=p,
        delta=cliffs_delta([old.mean for old, _ in pairs], [new.mean for _, new in pairs]),
    )


def _differences(rule: MeasureRule, pairs: Pairs) -> list[float]:
    """Return each scenario's difference: of logarithms on the relative scale.

    Logarithms need positive values. Where there is a 0, the differences are shares of the mean before.
    """
    if rule.scale is Scale.POINTS:
        return [new.mean - old.mean for old, new in pairs]
    if _has_logarithms(pairs):
        return [log(new.mean / old.mean) for old, new in pairs]
    unit = sum(abs(old.mean) for old, _ in pairs) / len(pairs) or 1.0
    return [(new.mean - old.mean) / unit for old, new in pairs]


def _has_logarithms(pairs: Pairs) -> bool:
    return all(old.mean > 0 and new.mean > 0 for old, new in pairs)


def _test(
    rule: MeasureRule, pairs: Pairs, differences: Sequence[float]
) -> tuple[ComparisonTest, float | None]:
    """Return the test that fits the data and its p; none where no test can reach a verdict."""
    if rule.is_outcome and len(pairs) > 1 and all(old.n == new.n == 1 for old, new in pairs):
        worse, better = sum(each < 0 for each in differences), sum(each > 0 for each in differences)
        return ComparisonTest.MCNEMAR, mcnemar_p(worse, better)
    if sum(each != 0 for each in differences) >= FEWEST_DIFFERENCES:
        return ComparisonTest.SIGN_FLIP, sign_flip_p(differences)
    if not rule.is_outcome:
        return ComparisonTest.NONE, None
    arms = [_arms(old, new) for old, new in pairs]
    if len(arms) > 1:
        return ComparisonTest.WITHIN_SCENARIOS, within_scenario_p(arms)
    if min(arms[0].trials_before, arms[0].trials_after) < FEWEST_TRIALS:
        return ComparisonTest.NONE, None
    return ComparisonTest.BOSCHLOO, boschloo_p(arms[0])


def _arms(old: Sample, new: Sample) -> Arms:
    return Arms(round(old.mean * old.n), old.n, round(new.mean * new.n), new.n)


def _interval(
    rule: MeasureRule, pairs: Pairs, differences: Sequence[float], test: ComparisonTest
) -> tuple[float | None, float | None]:
    """Return the effect's 95 % interval: of these scenarios where the test is about them, else Student's.

    It is unknown for one scenario of a measure without pass or fail.
    """
    if rule.is_outcome and (test is ComparisonTest.WITHIN_SCENARIOS or len(pairs) == 1):
        return mean_difference([_counts(pair) for pair in pairs])
    if len(pairs) == 1:
        return None, None
    low, high = t_interval(differences, CONFIDENCE)
    if rule.scale is Scale.POINTS:
        low, high = max(-1.0, low), min(1.0, high)
    elif not _has_logarithms(pairs):
        # A count, a cost or a time falls by all of it at most.
        low = max(-1.0, low)
    return _shown(rule, pairs, low), _shown(rule, pairs, high)


def _counts(pair: tuple[Sample, Sample]) -> tuple[int, int, int, int]:
    arms = _arms(*pair)
    return arms.before, arms.trials_before, arms.after, arms.trials_after


def _shown(rule: MeasureRule, pairs: Pairs, difference: float) -> float:
    """Return a difference as it is reported: logarithms become the share by which a value grew."""
    is_log = rule.scale is Scale.RELATIVE and _has_logarithms(pairs)
    return expm1(min(difference, 700.0)) if is_log else difference


def _judged(change: MeasureChange, pairs: Pairs, corrected: float | None, family: int) -> MeasureChange:
    """Return the change with its verdict, in the order: regressed or improved, equivalent, too little, no evidence."""
    if not pairs:
        return change
    rule, differences = change.rule, _differences(change.rule, pairs)
    mean = sum(differences) / len(differences)
    is_significant = corrected is not None and corrected < ALPHA
    is_large = abs(mean) >= _threshold(rule, pairs) - 1e-12
    power = _Power(change, pairs, differences, family)
    detectable = power.detectable
    change = replace(
        change,
        corrected=corrected,
        detectable=None if detectable is None else _shown(rule, pairs, detectable),
        more_trials=power.more_trials(),
        below_threshold=is_significant and not is_large,
    )
    return replace(change, verdict=_verdict(change, mean, is_significant and is_large, power))


def _verdict(change: MeasureChange, mean: float, is_change: bool, power: _Power) -> ChangeVerdict:
    if is_change and change.rule.better != "none":
        is_better = (mean > 0) == (change.rule.better == "higher")
        return ChangeVerdict.IMPROVED if is_better else ChangeVerdict.REGRESSED
    if power.is_equivalent():
        return ChangeVerdict.EQUIVALENT
    if change.below_threshold:
        return ChangeVerdict.NO_EVIDENCE
    detectable = power.detectable
    if detectable is None or detectable > power.threshold:
        return ChangeVerdict.TOO_LITTLE
    return ChangeVerdict.NO_EVIDENCE


def _threshold(rule: MeasureRule, pairs: Pairs) -> float:
    """Return the smallest effect of interest on the scale of the differences."""
    is_log = rule.scale is Scale.RELATIVE and _has_logarithms(pairs)
    return log1p(rule.smallest) if is_log else rule.smallest


class _Power:
    """What a comparison can show: its standard error without any change, and the sizes that follow from it."""

    def __init__(
        self, change: MeasureChange, pairs: Pairs, differences: Sequence[float], family: int
    ) -> None:
        self.change, self.pairs, self.differences, self.family = change, pairs, differences, family
        self.threshold = _threshold(change.rule, pairs)
        unit = None if _has_logarithms(pairs) else sum(abs(old.mean) for old, _ in pairs) / len(pairs)
        self._trial = [_trial_variance(change.rule, old, new, unit) for old, new in pairs]

    def is_equivalent(self) -> bool:
        """Return whether the 90 % interval lies within the smallest effect (two one-sided tests, Schuirmann 1987).

        The variance is at least that of trials, because equal results of few trials prove nothing.
        """
        if len(self.pairs) < FEWEST_FOR_EQUIVALENCE or not self.floor:
            return False
        mean, error = mean_and_error(self.differences, self.floor)
        half = t_quantile(0.95, len(self.pairs) - 1) * error
        return abs(mean) + half < self.threshold

    @cached_property
    def detectable(self) -> float | None:
        """The smallest detectable difference after the correction; None without a test."""
        if self.change.test is ComparisonTest.NONE:
            return None
        return self._quantiles * sqrt(self._variance)

    def more_trials(self) -> int | None:
        """Return how many more trials each scenario needs in both runs; None where they can't be enough."""
        scenarios = len(self.pairs)
        fewest = min(min(old.n, new.n) for old, new in self.pairs)
        variance = (self.threshold / self._quantiles) ** 2
        trial = sum(self._trial) / scenarios**2
        between = 0.0 if self._is_within() else max(0.0, self._variance - self.floor)
        if trial == 0.0 or variance <= between:
            return None
        needed = ceil(2 * trial / (variance - between))
        return max(0, needed - fewest) if needed <= MOST_TRIALS else None

    def factor(self, grown: Pairs) -> float:
        """Return the detectable difference with these trials instead, as a share of the present one."""
        variance = self._variance
        left = (
            max(0.0, variance - self.floor) + _Power(self.change, grown, self.differences, self.family).floor
        )
        return sqrt(left / variance) if variance else 1.0

    def _is_within(self) -> bool:
        return self.change.is_about_these_scenarios or len(self.pairs) < 2

    @cached_property
    def floor(self) -> float:
        """The variance of the mean difference that comes from trials alone."""
        each = zip(self._trial, self.pairs, strict=True)
        return sum(variance * (1 / old.n + 1 / new.n) for variance, (old, new) in each) / len(self.pairs) ** 2

    @cached_property
    def _variance(self) -> float:
        return self.floor if self._is_within() else mean_and_error(self.differences, self.floor)[1] ** 2

    @cached_property
    def _quantiles(self) -> float:
        freedom = 1_000_000 if self._is_within() else len(self.pairs) - 1
        return t_quantile(1 - ALPHA / 2 / self.family, freedom) + t_quantile(POWER, freedom)


def _trial_variance(rule: MeasureRule, old: Sample, new: Sample, unit: float | None) -> float:
    """Return the variance of one trial on the scale of the differences.

    A rate or score between 0 and 1 varies at most as passes do. On the relative scale the variance within both runs
    is divided by the squared unit, which for logarithms is the mean (delta method).
    """
    n, mean = old.n + new.n, (old.mean * old.n + new.mean * new.n) / (old.n + new.n)
    if rule.scale is Scale.POINTS:
        return jeffreys_variance(min(max(mean, 0.0), 1.0) * n, n)
    unit = mean if unit is None else unit
    return (old.m2 + new.m2) / (n - 2) / unit**2 if n > 2 and unit else 0.0
