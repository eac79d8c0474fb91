"""Compare the measures of two runs scenario by scenario and name each change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil, expm1, log, log1p, sqrt
from typing import NamedTuple

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
    Values,
    benjamini_hochberg,
    boschloo_p,
    cliffs_delta,
    holm,
    jeffreys_variance,
    mean_and_error,
    sign_flip_p,
    t_quantile,
    within_moments_p,
    within_scenario_p,
)
from evaluators.statistics import mean_difference

ALPHA = 0.05
"""The share of false alarms of a comparison as a whole."""


class Shares(NamedTuple):
    """The levels of a comparison's tests, which together are at most `ALPHA`."""

    pass_rate: float
    """Of the suite's pass rate."""
    scenarios: float
    """Of the table of scenarios (Benjamini and Hochberg)."""
    others: float
    """Of the other headline measures (Holm), which have the pass rate's level as well once that is significant (Bretz
    et al. 2009)."""


ONE_RUN = Shares(pass_rate=0.03, scenarios=0.05, others=0.005)
"""Against one run the table's exact test raises at most 1 % at its level (`tests/evaluators/simulated_runs.py`)."""
AGAINST_LINE = Shares(pass_rate=0.035, scenarios=0.01, others=0.005)
"""Against a line there are many old trials, so that the table uses its level up (`tests/evaluators/simulated_lines.py`)."""
PASS_RATE_SHARE, SCENARIOS_SHARE, OTHERS_SHARE = ONE_RUN


class Levels(NamedTuple):
    """The levels of a comparison's two questions; lower while it is looked at before its end (`evaluators.looks`)."""

    pass_rate: float = PASS_RATE_SHARE
    scenarios: float = SCENARIOS_SHARE


ONE_LOOK = Levels()
"""The levels of a comparison that nobody looked at before."""
POWER = 0.8
"""The share of comparisons that find a change of the detectable size."""
CONFIDENCE = 0.95
FEWEST_FOR_EQUIVALENCE = 10
"""The fewest scenarios of which runs can be called equivalent."""
_MANY = 1_000_000
"""Degrees of freedom of a normal distribution."""
_ENOUGH_SCENARIOS = 8
"""Scenarios that lose every trial; with them, any number of trials reaches a verdict."""
MOST_TRIALS = 1_000
"""Don't recommend more trials of each scenario than this."""


def compare_headline(
    measures: Sequence[tuple[MeasureRule, Mapping[str, Sample], Mapping[str, Sample]]],
    levels: Levels = ONE_LOOK,
) -> list[MeasureChange]:
    """Return the change of each headline measure, with one error for all of them and the table of scenarios.

    Takes the pass rate first, and each measure's samples before and after by scenario; only scenarios that can be
    compared may be among them. A scenario that one side lacks is left out. The pass rate's change names the scenarios
    that broke.
    """
    changes = [_tested(rule, _pairs(before, after)) for rule, before, after in measures]
    has_passes = bool(changes) and changes[0].rule.is_outcome and changes[0].p is not None
    shares = ONE_RUN._replace(pass_rate=levels.pass_rate, scenarios=levels.scenarios)
    parts = share_error([change.p for change in changes], shares, has_passes=has_passes)
    found = [
        _judged(change, _pairs(before, after), p, own)
        for change, (_, before, after), (p, own) in zip(changes, measures, parts, strict=True)
    ]
    if has_passes:
        found[0] = with_scenarios(found[0], compare_scenarios(*measures[0], levels.scenarios))
    return found


def share_error(
    ps: Sequence[float | None], shares: Shares, *, has_passes: bool
) -> list[tuple[float | None, float]]:
    """Return each headline measure's corrected p, of which 0.05 decides, and its part of the error.

    `has_passes` says whether the first p is that of the suite's pass rate.
    """
    first = ps[0] if has_passes else None
    others = ps[1:] if has_passes else ps
    is_passed_on = first is not None and first < shares.pass_rate
    share = shares.others + (shares.pass_rate if is_passed_on else 0.0)
    tested = [p for p in others if p is not None]
    corrected = iter(holm(tested))
    found: list[tuple[float | None, float]] = []
    if first is not None:
        found.append((scaled(first, shares.pass_rate), shares.pass_rate))
    own = share / max(1, len(tested))
    return found + [(None if p is None else scaled(next(corrected), share), own) for p in others]


def scaled(p: float, share: float) -> float:
    """Return a p so that 0.05 decides where `share` does."""
    return min(1.0, p * ALPHA / share)


def with_scenarios(change: MeasureChange, scenarios: Mapping[str, MeasureChange]) -> MeasureChange:
    """Return the pass rate's change with the names of the scenarios that broke or improved."""

    def named(verdict: ChangeVerdict) -> tuple[str, ...]:
        return tuple(key for key, each in scenarios.items() if each.verdict is verdict)

    return replace(change, broke=named(ChangeVerdict.REGRESSED), mended=named(ChangeVerdict.IMPROVED))


def compare_measures(
    measures: Sequence[tuple[MeasureRule, Mapping[str, Sample], Mapping[str, Sample]]],
) -> list[MeasureChange]:
    """Return each further measure's change, corrected for the share of false discoveries.

    Takes the samples as `compare_headline` does.
    """
    changes = [_tested(rule, _pairs(before, after)) for rule, before, after in measures]
    tested = [change.p for change in changes if change.p is not None]
    corrected = iter(benjamini_hochberg(tested))
    share = ALPHA / max(1, len(tested))
    return [
        _judged(change, _pairs(before, after), next(corrected) if change.p is not None else None, share)
        for change, (_, before, after) in zip(changes, measures, strict=True)
    ]


def compare_scenarios(
    rule: MeasureRule,
    before: Mapping[str, Sample],
    after: Mapping[str, Sample],
    level: float = SCENARIOS_SHARE,
) -> dict[str, MeasureChange]:
    """Return the change of each scenario's pass rate, corrected over all of them (Benjamini and Hochberg)."""
    changes = {key: _tested(rule, [(before[key], after[key])]) for key in after if key in before}
    tested = [key for key, change in changes.items() if change.p is not None]
    ps = benjamini_hochberg([changes[key].p or 0.0 for key in tested])
    by_key = {key: scaled(p, level) for key, p in zip(tested, ps, strict=True)}
    share = level / max(1, len(tested))
    return {
        key: _judged(change, [(before[key], after[key])], by_key.get(key), share)
        for key, change in changes.items()
    }


def overall(changes: Sequence[MeasureChange]) -> ChangeVerdict:
    """Return the verdict of a whole comparison from its headline measures, the pass rate first.

    Regressed where any scenario broke or any measure regressed, else improved where any improved, else the verdict of
    the first measure. Not comparable where the pass rate isn't.
    """
    verdicts = [change.verdict for change in changes]
    if verdicts[:1] == [ChangeVerdict.NOT_COMPARABLE]:
        return ChangeVerdict.NOT_COMPARABLE
    if any(change.broke for change in changes) or ChangeVerdict.REGRESSED in verdicts:
        return ChangeVerdict.REGRESSED
    if any(change.mended for change in changes) or ChangeVerdict.IMPROVED in verdicts:
        return ChangeVerdict.IMPROVED
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
    power = _Power(change, pairs, _differences(change.rule, pairs), ALPHA)
    return change.detectable * power.factor(grown)


def _pairs(before: Mapping[str, Sample], after: Mapping[str, Sample]) -> Pairs:
    return [(before[key], after[key]) for key in after if key in before]


def _tested(rule: MeasureRule, pairs: Pairs) -> MeasureChange:
    """Return a change with its sizes and its p, before any correction."""
    if not pairs:
        return MeasureChange(rule, ChangeVerdict.NOT_COMPARABLE, 0)
    differences = _differences(rule, pairs)
    test, p = _test(rule, pairs, differences)
    has_signs = sum(each != 0 for each in differences) >= FEWEST_DIFFERENCES
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
        p_elsewhere=sign_flip_p(differences) if has_signs else None,
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
    if rule.is_outcome:
        arms = [_arms(old, new) for old, new in pairs]
        if len(arms) > 1:
            return ComparisonTest.WITHIN_SCENARIOS, within_scenario_p(arms, mid=True)
        return ComparisonTest.BOSCHLOO, boschloo_p(arms[0])
    values = [_values(rule, old, new) for old, new in pairs]
    if sum(each.n_before + each.n_after for each in values) - len(values) < 2:
        return ComparisonTest.NONE, None
    return ComparisonTest.WITHIN_MOMENTS, within_moments_p(values)


def _values(rule: MeasureRule, old: Sample, new: Sample) -> Values:
    """Return a scenario's values in both runs, on the relative scale as shares of their common mean."""
    n = old.n + new.n
    unit = 1.0 if rule.scale is Scale.POINTS else abs(old.mean * old.n + new.mean * new.n) / n or 1.0
    return Values(old.n, old.mean / unit, old.m2 / unit**2, new.n, new.mean / unit, new.m2 / unit**2)


def _arms(old: Sample, new: Sample) -> Arms:
    return Arms(round(old.mean * old.n), old.n, round(new.mean * new.n), new.n)


def _interval(
    rule: MeasureRule, pairs: Pairs, differences: Sequence[float], test: ComparisonTest
) -> tuple[float | None, float | None]:
    """Return the effect's 95 % interval, of these scenarios; unknown where nothing says how much trials vary."""
    if len(pairs) == 1 and rule.is_outcome:
        return mean_difference([_counts(pair) for pair in pairs])
    variance, freedom = _within(rule, pairs)
    if test is ComparisonTest.NONE or freedom < 1 or variance <= 0.0:
        return None, None
    mean = sum(differences) / len(differences)
    half = t_quantile((1 + CONFIDENCE) / 2, freedom) * sqrt(variance)
    low, high = mean - half, mean + half
    if rule.scale is Scale.POINTS:
        low, high = max(-1.0, low), min(1.0, high)
    elif not _has_logarithms(pairs):
        # A count, a cost or a time falls by all of it at most.
        low = max(-1.0, low)
    return _shown(rule, pairs, low), _shown(rule, pairs, high)


def _within(rule: MeasureRule, pairs: Pairs) -> tuple[float, int]:
    """Return the variance of the mean difference that comes from trials, and its degrees of freedom."""
    unit = None if _has_logarithms(pairs) else sum(abs(old.mean) for old, _ in pairs) / len(pairs)
    freedom = _MANY if rule.is_outcome else sum(old.n + new.n - 2 for old, new in pairs)
    if freedom < 1 and len(pairs) > 1:
        # Single trials vary only between scenarios.
        return mean_and_error(_differences(rule, pairs))[1] ** 2, len(pairs) - 1
    trial = _trial_variances(rule, pairs, unit)
    each = zip(trial, pairs, strict=True)
    return sum(own * (1 / old.n + 1 / new.n) for own, (old, new) in each) / len(pairs) ** 2, freedom


def _counts(pair: tuple[Sample, Sample]) -> tuple[int, int, int, int]:
    arms = _arms(*pair)
    return arms.before, arms.trials_before, arms.after, arms.trials_after


def _shown(rule: MeasureRule, pairs: Pairs, difference: float) -> float:
    """Return a difference as it is reported: logarithms become the share by which a value grew."""
    is_log = rule.scale is Scale.RELATIVE and _has_logarithms(pairs)
    return expm1(min(difference, 700.0)) if is_log else difference


def _judged(change: MeasureChange, pairs: Pairs, corrected: float | None, share: float) -> MeasureChange:
    """Return the change with its verdict, in the order: regressed or improved, equivalent, small, too little, no evidence.

    `share` is the part of the error that its test has.
    """
    if not pairs:
        return change
    rule, differences = change.rule, _differences(change.rule, pairs)
    mean = sum(differences) / len(differences)
    is_significant = corrected is not None and corrected < ALPHA
    is_large = abs(mean) >= _threshold(rule, pairs) - 1e-12
    power = _Power(change, pairs, differences, share)
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
        return ChangeVerdict.SMALL
    detectable = power.detectable
    if detectable is None or detectable > power.threshold:
        return ChangeVerdict.TOO_LITTLE
    return ChangeVerdict.NO_EVIDENCE


def _threshold(rule: MeasureRule, pairs: Pairs) -> float:
    """Return the smallest effect of interest on the scale of the differences."""
    is_log = rule.scale is Scale.RELATIVE and _has_logarithms(pairs)
    return log1p(rule.smallest) if is_log else rule.smallest


class _Power:
    """What a comparison can show: the standard error that comes from trials, and the sizes that follow from it."""

    def __init__(
        self, change: MeasureChange, pairs: Pairs, differences: Sequence[float], share: float
    ) -> None:
        self.change, self.pairs, self.differences, self.share = change, pairs, differences, share
        self.threshold = _threshold(change.rule, pairs)
        unit = None if _has_logarithms(pairs) else sum(abs(old.mean) for old, _ in pairs) / len(pairs)
        self._trial = _trial_variances(change.rule, pairs, unit)
        self.variance = _within(change.rule, pairs)[0]

    def is_equivalent(self) -> bool:
        """Return whether the 90 % interval lies within the smallest effect (two one-sided tests, Schuirmann 1987).

        The variance is at least that of trials, because equal results of few trials prove nothing.
        """
        if len(self.pairs) < FEWEST_FOR_EQUIVALENCE or not self.variance:
            return False
        mean, error = mean_and_error(self.differences, self.variance)
        half = t_quantile(0.95, len(self.pairs) - 1) * error
        return abs(mean) + half < self.threshold

    @cached_property
    def detectable(self) -> float | None:
        """The smallest detectable difference after the correction; None without a test that can reach a verdict."""
        if self.change.test is ComparisonTest.NONE or not self._can_reach_verdict():
            return None
        return self._quantiles * sqrt(self.variance)

    def _can_reach_verdict(self) -> bool:
        """Return whether losing every trial of every scenario would be significant."""
        if not self.change.rule.is_outcome:
            return True
        lost = [Arms(old.n, old.n, 0, new.n) for old, new in self.pairs[:_ENOUGH_SCENARIOS]]
        p = boschloo_p(lost[0]) if len(lost) == 1 else within_scenario_p(lost, mid=True)
        return p < self.share

    def more_trials(self) -> int | None:
        """Return how many more trials each scenario needs in both runs; None where they can't be enough."""
        scenarios = len(self.pairs)
        fewest = min(min(old.n, new.n) for old, new in self.pairs)
        trial = sum(self._trial) / scenarios**2
        if trial == 0.0:
            return None
        needed = ceil(2 * trial / (self.threshold / self._quantiles) ** 2)
        return max(0, needed - fewest) if needed <= MOST_TRIALS else None

    def factor(self, grown: Pairs) -> float:
        """Return the detectable difference with these trials instead, as a share of the present one."""
        return sqrt(_within(self.change.rule, grown)[0] / self.variance) if self.variance else 1.0

    @cached_property
    def _quantiles(self) -> float:
        return t_quantile(1 - self.share / 2, _MANY) + t_quantile(POWER, _MANY)


def _trial_variances(rule: MeasureRule, pairs: Pairs, unit: float | None) -> list[float]:
    """Return the variance of one trial of each scenario on the scale of the differences.

    A pass varies by its rate. Other values vary as those of all scenarios do within their runs, because few trials of
    one say little. On the relative scale that is divided by the squared unit, which for logarithms is the mean of
    each scenario (delta method).
    """
    if rule.is_outcome:
        rates = [
            ((old.mean * old.n + new.mean * new.n) / (old.n + new.n), old.n + new.n) for old, new in pairs
        ]
        return [jeffreys_variance(min(max(rate, 0.0), 1.0) * n, n) for rate, n in rates]
    freedom = sum(old.n + new.n - 2 for old, new in pairs)
    if freedom < 1:
        return [0.0] * len(pairs)
    units = [unit if unit and rule.scale is Scale.RELATIVE else 1.0] * len(pairs)
    if rule.scale is Scale.RELATIVE and unit is None:
        units = [(old.mean * old.n + new.mean * new.n) / (old.n + new.n) for old, new in pairs]
    squares = sum((old.m2 + new.m2) / own**2 for (old, new), own in zip(pairs, units, strict=True))
    # One more value, as far off as the smallest effect: equal values of few trials don't mean that nothing varies.
    return [(squares + rule.smallest**2) / (freedom + 1)] * len(pairs)
