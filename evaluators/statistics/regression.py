"""Compare the measures of two runs scenario by scenario and name each change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import expm1, sqrt

from evaluators.statistics.descriptive import mean_difference
from evaluators.statistics.looks import (
    ALPHA,
    ONE_LOOK,
    ONE_RUN,
    PASS_RATE_SHARE,
    SCENARIOS_SHARE,
    Levels,
    scale_p,
    share_error,
)
from evaluators.statistics.measure_change import (
    ChangeVerdict,
    ComparisonTest,
    MeasureChange,
    MeasureRule,
    Pairs,
    Sample,
    Scale,
    Spread,
    arms_of,
    change_of,
    count_changes,
)
from evaluators.statistics.measure_power import MeasurePower
from evaluators.statistics.measure_variance import (
    cautious_variance,
    differences_of,
    has_logarithms,
    on_scale,
    within_variance,
)
from evaluators.statistics.power import RELIABLE
from evaluators.statistics.significance import (
    Values,
    benjamini_hochberg,
    boschloo_p,
    mean_and_error,
    student_p,
    t_quantile,
    within_moments_p,
    within_scenario_p,
)

CONFIDENCE = 0.95
FEWEST_FOR_EQUIVALENCE = 10
"""The fewest scenarios with which runs can be called equivalent."""


def compare_headline(
    measures: Sequence[tuple[MeasureRule, Mapping[str, Sample], Mapping[str, Sample]]],
    levels: Levels = ONE_LOOK,
    *,
    spreads: Mapping[str, Spread] | None = None,
    with_power: bool = True,
) -> list[MeasureChange]:
    """Return the change of each headline measure, with one error for all of them and the table of scenarios.

    Takes the pass rate first, and each measure's samples before and after by scenario; only scenarios that can be
    compared may be among them. A scenario that one side lacks is left out. The pass rate's change names the scenarios
    that broke. `spreads`: of runs that did not run in turn, how much each measure varies from run to run of their line,
    by name; the larger p of the test within scenarios and of t decides. `with_power`: whether to compute what the comparison could have shown, which takes most of the time.
    """
    changes = [
        _with_spread(_test_measure(rule, _pairs(before, after)), (spreads or {}).get(rule.measure))
        for rule, before, after in measures
    ]
    has_passes = bool(changes) and changes[0].is_outcome and changes[0].p is not None
    shares = ONE_RUN._replace(pass_rate=levels.pass_rate, scenarios=levels.scenarios)
    parts = share_error([change.p for change in changes], shares, has_passes=has_passes)
    results = [
        _judge_change(change, _pairs(before, after), p, part, with_power=with_power)
        for change, (_, before, after), (p, part) in zip(changes, measures, parts, strict=True)
    ]
    if has_passes:
        results[0] = with_scenarios(
            results[0], compare_scenarios(*measures[0], levels.scenarios, with_power=False)
        )
    return results


def _with_spread(change: MeasureChange, spread: Spread | None) -> MeasureChange:
    """Return a change with the larger p of its own and of t for two runs of a line."""
    if spread is None or change.p is None or change.effect is None:
        return change
    return replace(
        change, p=max(change.p, student_p(change.effect, spread.deviation * sqrt(2), spread.runs - 1))
    )


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
    changes = [_test_measure(rule, _pairs(before, after)) for rule, before, after in measures]
    tested = [change.p for change in changes if change.p is not None]
    corrected = iter(benjamini_hochberg(tested))
    share = ALPHA / max(1, len(tested))
    results = []
    for change, (_, before, after) in zip(changes, measures, strict=True):
        pairs, p = _pairs(before, after), next(corrected) if change.p is not None else None
        results.append(_judge_change(change, pairs, p, share, with_power=True))
    return results


def compare_scenarios(
    rule: MeasureRule,
    before: Mapping[str, Sample],
    after: Mapping[str, Sample],
    level: float = SCENARIOS_SHARE,
    *,
    with_power: bool = True,
) -> dict[str, MeasureChange]:
    """Return the change of each scenario's pass rate, corrected over all of them (Benjamini and Hochberg).

    `with_power` is that of `compare_headline`.
    """
    changes = {key: _test_measure(rule, [(before[key], after[key])]) for key in after if key in before}
    tested = [key for key, change in changes.items() if change.p is not None]
    ps = benjamini_hochberg([changes[key].p or 0.0 for key in tested])
    # A single scenario is the suite: its test is the pass rate's.
    level = min(level, PASS_RATE_SHARE) if len(changes) == 1 else level
    by_key = {key: scale_p(p, level) for key, p in zip(tested, ps, strict=True)}
    share = level / max(1, len(tested))
    return {
        key: _judge_change(change, [(before[key], after[key])], by_key.get(key), share, with_power=with_power)
        for key, change in changes.items()
    }


def decide_overall(changes: Sequence[MeasureChange]) -> ChangeVerdict:
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


def find_deciding(headline: Sequence[MeasureChange]) -> MeasureChange:
    """Return the measure that the verdict of headline measures is about. Requires one.

    The pass rate where scenarios broke or improved, else the first with the verdict.
    """
    verdict = decide_overall(headline)
    named = (each for each in headline if (each.broke if verdict is ChangeVerdict.REGRESSED else each.mended))
    if verdict in (ChangeVerdict.REGRESSED, ChangeVerdict.IMPROVED) and (first := next(named, None)):
        return first
    return next((each for each in headline if each.verdict is verdict), headline[0])


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
    if not pairs or change.test is ComparisonTest.NONE:
        return None
    added = [trials if key in keys else 0 for key in after if key in before]
    power = MeasurePower(change, pairs, PASS_RATE_SHARE if change.is_outcome else ALPHA)
    effect = power.detectable_with(
        [old.n + more for (old, _), more in zip(pairs, added, strict=True)],
        [new.n + more for (_, new), more in zip(pairs, added, strict=True)],
    )
    return None if effect is None else _shown_difference(change, pairs, effect)


def _pairs(before: Mapping[str, Sample], after: Mapping[str, Sample]) -> Pairs:
    return [(before[key], after[key]) for key in after if key in before]


def _test_measure(rule: MeasureRule, pairs: Pairs) -> MeasureChange:
    """Return a change with its sizes and its p, before any correction."""
    if not pairs:
        return change_of(rule, ChangeVerdict.NOT_COMPARABLE, 0)
    differences = differences_of(rule, pairs)
    test, p = _test(rule, pairs)
    effect = _shown_difference(rule, pairs, sum(differences) / len(differences))
    lower, upper = _interval(_as_tested(rule, pairs), pairs, differences, test)
    return replace(
        count_changes(rule, pairs, differences),
        effect=effect,
        lower=lower,
        upper=upper,
        test=test,
        p=p,
    )


def _test(rule: MeasureRule, pairs: Pairs) -> tuple[ComparisonTest, float | None]:
    """Return the test that fits the data and its p; none where no test can reach a verdict."""
    if rule.is_outcome:
        arms = [arms_of(old, new) for old, new in pairs]
        if len(arms) > 1:
            return ComparisonTest.WITHIN_SCENARIOS, within_scenario_p(arms, mid=True)
        return ComparisonTest.BOSCHLOO, boschloo_p(arms[0])
    if sum(old.n + new.n for old, new in pairs) - len(pairs) < 2:
        return ComparisonTest.NONE, None
    is_exact = _is_pass_or_fail(pairs)
    test = ComparisonTest.WITHIN_SCENARIOS if is_exact else ComparisonTest.WITHIN_MOMENTS
    return test, permuted_p(rule, pairs)


def permuted_p(rule: MeasureRule, pairs: Pairs) -> float:
    """Return the p of the mean difference by permuting trials within scenarios.

    Exact where all values are 0 or 1, whatever the measure is called: statements share names with rubrics' scores.
    """
    if rule.is_outcome or _is_pass_or_fail(pairs):
        return within_scenario_p([arms_of(old, new) for old, new in pairs], mid=True)
    return within_moments_p([_values(rule, old, new) for old, new in pairs])


def _as_tested(rule: MeasureRule, pairs: Pairs) -> MeasureRule:
    """Return the rule by whose test a measure is compared: that of outcomes where every value is 0 or 1."""
    is_outcome = rule.is_outcome or (rule.scale is Scale.POINTS and _is_pass_or_fail(pairs))
    return replace(rule, is_outcome=is_outcome)


def _is_pass_or_fail(pairs: Pairs) -> bool:
    """Return whether all values are 0 or 1: only then the sum of their squares is their sum."""
    samples = [sample for pair in pairs for sample in pair]
    return all(abs(each.m2 - each.n * each.mean * (1 - each.mean)) < 1e-9 for each in samples)


def _values(rule: MeasureRule, old: Sample, new: Sample) -> Values:
    """Return a scenario's values in both runs, on the relative scale as shares of their common mean."""
    n = old.n + new.n
    unit = 1.0 if rule.scale is Scale.POINTS else abs(old.mean * old.n + new.mean * new.n) / n or 1.0
    return Values(old.n, old.mean / unit, old.m2 / unit**2, new.n, new.mean / unit, new.m2 / unit**2)


def _interval(
    rule: MeasureRule, pairs: Pairs, differences: Sequence[float], test: ComparisonTest
) -> tuple[float | None, float | None]:
    """Return the effect's 95 % interval, of these scenarios; unknown where nothing says how much trials vary."""
    if len(pairs) == 1 and rule.is_outcome:
        return mean_difference([_counts(pair) for pair in pairs])
    variance, freedom = within_variance(rule, pairs)
    if test is ComparisonTest.NONE or freedom < 1 or variance <= 0.0:
        return None, None
    mean = sum(differences) / len(differences)
    half = t_quantile((1 + CONFIDENCE) / 2, freedom) * sqrt(variance)
    low, high = mean - half, mean + half
    if rule.scale is Scale.POINTS:
        low, high = max(-1.0, low), min(1.0, high)
    elif not has_logarithms(pairs):
        # A count, a cost or a time falls by all of it at most.
        low = max(-1.0, low)
    return _shown_difference(rule, pairs, low), _shown_difference(rule, pairs, high)


def _counts(pair: tuple[Sample, Sample]) -> tuple[int, int, int, int]:
    arms = arms_of(*pair)
    return arms.before, arms.trials_before, arms.after, arms.trials_after


def _shown_difference(rule: MeasureRule, pairs: Pairs, difference: float) -> float:
    """Return a difference as it is reported: logarithms become the share by which a value grew."""
    is_log = rule.scale is Scale.RELATIVE and has_logarithms(pairs)
    return expm1(min(difference, 700.0)) if is_log else difference


def _judge_change(
    change: MeasureChange, pairs: Pairs, corrected: float | None, share: float, *, with_power: bool
) -> MeasureChange:
    """Return the change with its verdict; `share` is the part of the error that its test has."""
    if not pairs:
        return change
    rule, differences = change, differences_of(change, pairs)
    mean = sum(differences) / len(differences)
    is_significant = corrected is not None and corrected < ALPHA
    is_large = abs(mean) >= on_scale(rule.smallest_effect, rule, pairs) - 1e-12
    change = replace(change, p_corrected=corrected, below_threshold=is_significant and not is_large)
    power = (
        None if change.test is ComparisonTest.NONE else MeasurePower(_as_tested(rule, pairs), pairs, share)
    )
    verdict = verdict_of(
        rule,
        mean,
        (on_scale(rule.smallest_effect, rule, pairs), on_scale(RELIABLE * rule.smallest_effect, rule, pairs)),
        is_significant=is_significant,
        is_equivalent=lambda: _is_equivalent(_as_tested(rule, pairs), pairs, differences),
        is_enough=lambda: power is not None and power.is_enough(),
    )
    change = replace(change, verdict=verdict)
    return _with_power(change, pairs, power) if with_power and power else change


def verdict_of(
    rule: MeasureRule,
    mean: float,
    sizes: tuple[float, float],
    *,
    is_significant: bool,
    is_equivalent: Callable[[], bool] = lambda: False,
    is_enough: Callable[[], bool] = lambda: False,
) -> ChangeVerdict:
    """Return the verdict of a mean difference, in the order: regressed, improved or changed, equivalent, small, undecided.

    `sizes` are the smallest effect and the one that advice is for, on the scale of the difference; `is_enough` says
    whether the latter would have been found.
    """
    smallest, reliable = sizes
    is_large = abs(mean) >= smallest - 1e-12
    if is_significant and is_large:
        if rule.better_is == "none":
            return ChangeVerdict.CHANGED
        return (
            ChangeVerdict.IMPROVED if (mean > 0) == (rule.better_is == "higher") else ChangeVerdict.REGRESSED
        )
    if is_equivalent():
        return ChangeVerdict.EQUIVALENT
    if is_significant and not is_large:
        return ChangeVerdict.SMALL
    # A change this large would have been found if every scenario had it: they changed too differently to tell.
    is_unfound = not is_significant and abs(mean) >= reliable
    return ChangeVerdict.NO_EVIDENCE if not is_unfound and is_enough() else ChangeVerdict.TOO_LITTLE


def _with_power(change: MeasureChange, pairs: Pairs, power: MeasurePower) -> MeasureChange:
    effect = power.detectable
    return replace(
        change,
        detectable=None if effect is None else _shown_difference(change, pairs, effect),
        most_found=power.most_found,
        more_trials=power.more_trials,
    )


def _is_equivalent(rule: MeasureRule, pairs: Pairs, differences: Sequence[float]) -> bool:
    """Return whether the 90 % interval lies within the smallest effect (two one-sided tests, Schuirmann 1987).

    The variance is at least that of trials, because equal results of few trials prove nothing.
    """
    variance = cautious_variance(rule, pairs)
    if len(pairs) < FEWEST_FOR_EQUIVALENCE or not variance:
        return False
    mean, error = mean_and_error(differences, variance)
    half = t_quantile(0.95, len(pairs) - 1) * error
    return abs(mean) + half < on_scale(rule.smallest_effect, rule, pairs)
