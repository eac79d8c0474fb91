"""Compare a run with its line: the earlier runs of the same suite and target.

The suite is compared by Student's t over the line's runs and, within scenarios, by permuting trials, and both must agree:
t knows how runs vary from day to day, and is wrong where nothing has varied yet; the other is exact there. Scenarios are
compared by their trials of the last runs together. numpy and scipy are imported where they are used, because they would
double the time in which a web process starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import expm1, log1p, sqrt
from statistics import fmean, stdev, variance
from typing import NamedTuple

from evaluators.statistics.descriptive import mean_difference
from evaluators.statistics.looks import AGAINST_LINE, ALPHA, scale_p, share_error
from evaluators.statistics.measure_change import (
    ChangeVerdict,
    ComparisonTest,
    MeasureChange,
    MeasureRule,
    Sample,
    Scale,
    Spread,
    arms_of,
    change_of,
    count_changes,
    pool_samples,
)
from evaluators.statistics.power import POWER
from evaluators.statistics.regression import (
    CONFIDENCE,
    FEWEST_FOR_EQUIVALENCE,
    permuted_p,
    verdict_of,
    with_scenarios,
)
from evaluators.statistics.significance import (
    benjamini_hochberg,
    jeffreys_variance,
    student_p,
    t_quantile,
    within_scenario_p,
)

FEWEST_RUNS = 5
"""Fewest runs that are a line; with fewer, what varies from run to run is hardly known, and a run is compared with one."""
MOST_RUNS = 10
"""Most runs of a line before a window."""
WINDOWS = ((1, 2.0), (3, 4.0), (7, 4.0))
"""How many of the newest runs are compared together, and what their p is multiplied with (Bonferroni, by weights)."""
SCENARIO_WINDOWS = (2, 3, 5, 10)
"""Windows of single scenarios. Of one run, fresh trials decide (`evaluators.statistics.retest`)."""
RECENT = MOST_RUNS + max(SCENARIO_WINDOWS) - 1
"""How many earlier runs a comparison reads."""
DRIFT_RUNS, DRIFT_FEWEST, DRIFT_ENDS, DRIFT_LEVEL = 60, 30, 10, 0.01
"""The runs that show a drift, the fewest, how many at either end are compared, and the level."""
_T_95 = {5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""Student's t of 95 % intervals by the runs of a line: pages of many lines don't load scipy for it."""
Runs = Sequence[Mapping[str, Sample]]
"""A measure's samples by scenario key in each run, newest first; a run may lack scenarios."""


@dataclass(frozen=True)
class Line:
    """The earlier runs of one measure, newest first."""

    runs: Runs
    pending: int = 0
    """How many of the newest runs wait for a decision: while some do, the others are the reference."""
    since_fixed: Mapping[str, int] | None = None
    """How many runs, with the new one, a scenario has had since it was fixed; it has no larger window."""
    largest: int = RECENT
    """The largest window: runs of before the last decision, or of another guidance, are in none."""

    def before(self, window: int) -> Runs:
        """Return the runs that a window of this many is compared with; none where it reaches too far."""
        if window > max(1, self.largest):
            return ()
        if not self.pending:
            return self.runs[window - 1 :][:MOST_RUNS]
        return self.runs[self.pending :][:MOST_RUNS] if window <= self.pending + 1 else ()

    def window(self, after: Mapping[str, Sample], window: int) -> Runs:
        """Return the new run and those just before it."""
        return (after, *self.runs[: window - 1])


def spread_of(line: Line, after: Mapping[str, Sample]) -> Spread | None:
    """Return how much a measure varies from run to run over the new run's scenarios; None for fewer than `FEWEST_RUNS`."""
    before = [run for run in line.before(1) if run.keys() & after.keys()]
    if len(before) < FEWEST_RUNS:
        return None
    level = {key: sample.mean for key, sample in _pool(before, after).items()}
    return Spread(stdev(_distance(run, level) for run in before), len(before))


@dataclass(frozen=True)
class LineComparison:
    """A run compared with its line."""

    headline: list[MeasureChange]
    """Empty for fewer than `FEWEST_RUNS` runs. The pass rate's change names the scenarios that broke."""
    scenarios: dict[str, MeasureChange]
    """The pass rate's change by scenario key."""


def compare_with_line(measures: Sequence[tuple[MeasureRule, Line, Mapping[str, Sample]]]) -> LineComparison:
    """Compare the headline measures of a run with those of its line, and the pass rate of each scenario.

    Takes the pass rate first, with the line and the new run's samples of each; only scenarios that can be compared may
    be among them. Raises `ValueError` for a measure on the relative scale.
    """
    for rule, _, _ in measures:
        if rule.scale is not Scale.POINTS:
            raise ValueError(
                f"{rule.measure} isn't a measure from 0 to 1, so it can't be compared with a line."
            )
    table = _scenarios(*measures[0]) if measures and measures[0][0].is_outcome else {}
    compared = [(rule, _compare_windows(rule, line, after)) for rule, line, after in measures]
    if not compared or (compared[0][1] is None and compared[0][0].is_outcome):
        return LineComparison([], table)
    ps = [windows.strongest.p if windows else None for _, windows in compared]
    parts = share_error(ps, AGAINST_LINE, has_passes=compared[0][0].is_outcome)
    headline = [
        _judge_change(rule, windows.shown(p), p, is_outcome=rule.is_outcome) if windows else _nothing(rule)
        for (rule, windows), (p, _) in zip(compared, parts, strict=True)
    ]
    if table:
        headline[0] = with_scenarios(headline[0], table)
    return LineComparison(headline, table)


def compare_amount(
    rule: MeasureRule,
    line: Line,
    after: Mapping[str, Sample],
    plain: tuple[Line, Mapping[str, Sample]] | None = None,
) -> MeasureChange:
    """Compare an amount of a run, such as cost, with its line by t alone.

    With `plain`, the amounts themselves, the samples are of their logarithms: the change is the typical trial's, and the
    means before and after are those of the amounts.
    """
    windows = _compare_windows(rule, line, after, has_logs=plain is not None)
    if windows is None:
        return _nothing(rule)
    # The level of time, cost and tokens.
    corrected = scale_p(windows.strongest.p, 0.01)
    found = windows.shown(corrected)
    change = _judge_change(rule, found, corrected, is_outcome=False)
    if plain is None:
        return change
    old = _pool(plain[0].before(found.window), found.new)
    new = _pool(plain[0].window(plain[1], found.window), old)
    means = (fmean(side[key].mean for key in new) for side in (old, new))
    return replace(change, before=next(means), after=next(means))


def is_confirmed_by(change: MeasureChange) -> bool:
    """Return whether a measure of the run after a suspected one is below the reference, too: 10 %, one-sided."""
    sign = -1 if change.better_is == "lower" else 1
    if change.p is None or sign * (change.effect or 0.0) >= 0:
        return False
    # Its p is two-sided, and against a line corrected for windows.
    # The one-sided level at which the next run confirms a suspected one.
    return change.p / (WINDOWS[0][1] if change.test is ComparisonTest.LINE else 1) / 2 < 0.1


@dataclass(frozen=True)
class _Compared:
    """A window of runs compared with those before it."""

    window: int
    old: Mapping[str, Sample]
    new: Mapping[str, Sample]
    runs: int
    """Runs before the window."""
    effect: float
    """The change as it is tested."""
    unit: float
    """What a change is divided by to be a share; 0 for logarithms."""
    deviation: float
    """From run to run."""
    p: float
    """After the correction for windows."""

    def shown(self, change: float) -> float:
        """Return a change as it is reported: a difference from 0 to 1, or a share."""
        return expm1(min(change, 700.0)) if not self.unit else change / self.unit

    @property
    def error(self) -> float:
        """The standard error of the effect."""
        return self.deviation * sqrt(1 / self.window + 1 / self.runs)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the interval of the effect, as it is tested."""
        half = t_quantile((1 + confidence) / 2, self.runs - 1) * self.error
        return self.effect - half, self.effect + half


class _Windows(NamedTuple):
    """The windows of one measure."""

    tonight: _Compared
    """The new run alone."""
    strongest: _Compared
    """That with the smallest p among those with a change of the smallest effect, else the new run alone."""

    def shown(self, corrected: float | None) -> _Compared:
        """Return the window that decides, else the new run: of a calm one, others say nothing."""
        return self.strongest if corrected is not None and corrected < ALPHA else self.tonight


def _compare_windows(
    rule: MeasureRule, line: Line, after: Mapping[str, Sample], *, has_logs: bool = False
) -> _Windows | None:
    """Compare the newest runs with those before them, in each window; None for fewer than `FEWEST_RUNS` runs."""
    windows = WINDOWS[:1] if line.pending else WINDOWS
    compared = [
        found
        for window, factor in windows
        if (found := _compare_window(rule, line, after, window, factor, has_logs=has_logs))
    ]
    if not compared or compared[0].window > 1:
        return None
    large = [each for each in compared if abs(each.shown(each.effect)) >= rule.smallest_effect - 1e-12]
    return _Windows(compared[0], min(large, key=lambda each: each.p, default=compared[0]))


def _compare_window(
    rule: MeasureRule, line: Line, after: Mapping[str, Sample], window: int, factor: float, *, has_logs: bool
) -> _Compared | None:
    """Compare the newest runs with those before them, over the scenarios that the new run and the line have."""
    before = [run for run in line.before(window) if run.keys() & after.keys()]
    news = line.window(after, window)
    if len(before) < FEWEST_RUNS or len(news) < window:
        return None
    old = _pool(before, after)
    new = _pool(news, old)
    level = {key: sample.mean for key, sample in old.items()}
    distances = [_distance(run, level) for run in before]
    news_distances = [_distance(run, level) for run in news if run.keys() & level.keys()]
    effect = fmean(news_distances) - fmean(distances)
    unit = 0.0 if has_logs else (abs(fmean(level.values())) or 1.0) if rule.scale is Scale.RELATIVE else 1.0
    found = _Compared(window, old, new, len(before), effect, unit, stdev(distances), 1.0)
    p = factor * student_p(effect, found.error, len(before) - 1)
    if p < ALPHA and rule.scale is Scale.POINTS:
        # Slower, and only where t alone would decide.
        p = max(p, factor * permuted_p(rule, [(old[key], new[key]) for key in new if key in old]))
    return replace(found, p=min(1.0, p))


def _pool(runs: Runs, keys: Mapping[str, object]) -> dict[str, Sample]:
    """Return each scenario's trials of all these runs, of the scenarios among the keys."""
    shared = dict.fromkeys(key for run in runs for key in run if key in keys)
    return {key: reduce(pool_samples, (run[key] for run in runs if key in run)) for key in shared}


def _distance(run: Mapping[str, Sample], level: Mapping[str, float]) -> float:
    """Return how far a run's scenarios lie from their means in the line, so that runs may lack scenarios."""
    return fmean(run[key].mean - level[key] for key in run if key in level)


def _nothing(rule: MeasureRule) -> MeasureChange:
    return change_of(rule, ChangeVerdict.NOT_COMPARABLE, 0, runs_before=0)


def _judge_change(
    rule: MeasureRule, found: _Compared, corrected: float | None, *, is_outcome: bool
) -> MeasureChange:
    """Return the change of the whole with its verdict and the interval in which the line expects the run."""
    pairs = [(found.old[key], found.new[key]) for key in found.new]
    differences = [new.mean - old.mean for old, new in pairs]
    effect = found.shown(found.effect)
    is_significant = corrected is not None and corrected < ALPHA
    after = fmean(found.new[key].mean for key in found.new)
    # Where 95 % of windows like the new one are expected, from 0 to 1.
    spread = found.deviation**2
    if is_outcome:
        # A line without failures varies, too: at least as its trials do.
        trials = sum(
            jeffreys_variance(old.mean * old.n, old.n) / found.new[key].n * found.window
            for key, old in found.old.items()
            if key in found.new
        )
        spread = max(spread, trials / len(found.new) ** 2)
    expected = _range(after - found.effect, spread * (1 / found.window + 1 / found.runs), found.runs)
    low, high = found.interval(1 - 2 * ALPHA)
    is_near = max(-found.shown(low), found.shown(high)) < rule.smallest_effect
    verdict = verdict_of(
        rule,
        effect,
        (rule.smallest_effect, rule.smallest_effect),
        is_significant=is_significant,
        is_equivalent=lambda: len(pairs) >= FEWEST_FOR_EQUIVALENCE and found.deviation > 0 and is_near,
    )
    if verdict in (ChangeVerdict.TOO_LITTLE, ChangeVerdict.NO_EVIDENCE):
        is_expected = expected[0] - 1e-9 <= after <= expected[1] + 1e-9
        verdict = ChangeVerdict.AS_EXPECTED if is_expected else ChangeVerdict.NO_EVIDENCE
    lower, upper = (found.shown(end) for end in found.interval(CONFIDENCE))
    limit = 1.0 if rule.scale is Scale.POINTS else None
    return replace(
        count_changes(rule, pairs, differences),
        verdict=verdict,
        before=after - found.effect,
        after=after,
        effect=effect,
        lower=lower if limit is None else max(-limit, lower),
        upper=upper if limit is None else min(limit, upper),
        test=ComparisonTest.LINE,
        p=found.p,
        p_corrected=corrected,
        detectable=_detectable(rule, found),
        below_threshold=is_significant and abs(effect) < rule.smallest_effect - 1e-12,
        runs_before=found.runs,
        window=found.window,
        expected=expected if rule.scale is Scale.POINTS else None,
    )


def expected_range(earlier: Sequence[tuple[float, int]], trials: int) -> tuple[float, float] | None:
    """Return where 95 % of next runs with this many trials are expected, 0 to 1; None for fewer than `FEWEST_RUNS`.

    Takes pass rates and trials of the line's runs, oldest first, as pictures of many lines have them.
    """
    measured = [(rate, n) for rate, n in earlier if n][-MOST_RUNS:]
    if len(measured) < FEWEST_RUNS or not trials:
        return None
    rates, count = [rate for rate, _ in measured], sum(n for _, n in measured)
    spread = max(variance(rates), jeffreys_variance(fmean(rates) * count, count) / trials)
    return _range(fmean(rates), spread * (1 + 1 / len(rates)), len(rates))


def _range(center: float, spread: float, runs: int) -> tuple[float, float]:
    half = _T_95[runs] * sqrt(spread)
    return max(0.0, center - half), min(1.0, center + half)


def _detectable(rule: MeasureRule, found: _Compared) -> float:
    """Return the smallest change of the new run alone that is found with `POWER`, as it is reported."""
    level = AGAINST_LINE.pass_rate if rule.is_outcome else AGAINST_LINE.others
    change = _found_change(
        found.deviation,
        found.runs,
        level,
        log1p(rule.smallest_effect) if not found.unit else rule.smallest_effect,
    )
    return found.shown(change)


def _found_change(deviation: float, runs: int, level: float, smallest: float) -> float:
    error = deviation * sqrt(1 + 1 / runs)
    limit = t_quantile(1 - level / WINDOWS[0][1] / 2, runs - 1) * error
    return max(limit, smallest) + t_quantile(POWER, runs - 1) * error


def detectable_against_line(
    rates: Sequence[float], after: Sequence[int], run_rates: Sequence[float], smallest: float
) -> float:
    """Return the smallest change of the pass rate that a run finds against its line with `POWER`, 0 to 1.

    Takes each scenario's true rate and its trials in the new run, and the line's pass rates by run.
    """
    trials = sum(rate * (1 - rate) / n for rate, n in zip(rates, after, strict=True)) / len(rates) ** 2
    deviation = sqrt(max(variance(run_rates), trials))
    return min(1.0, _found_change(deviation, len(run_rates), AGAINST_LINE.pass_rate, smallest))


def _scenarios(rule: MeasureRule, line: Line, after: Mapping[str, Sample]) -> dict[str, MeasureChange]:
    """Return the pass rate's change of each scenario: its last runs together against those before them.

    Fisher's exact test, corrected over scenarios and windows (Benjamini and Hochberg), falls and rises for themselves.
    The sizes shown are those of the strongest window.
    """
    olds = {window: _pool(line.before(window), after) for window in (1, *SCENARIO_WINDOWS)}
    tested = [
        each
        for window in SCENARIO_WINDOWS
        for each in _test_window(line, after, olds, window, rule.smallest_effect)
    ]
    number = len(olds[1]) * len(SCENARIO_WINDOWS)
    found: dict[str, tuple[float, int]] = {}
    for direction in (True, False):
        own = [each for each in tested if each.is_fall == direction]
        corrected = benjamini_hochberg([*(each.p for each in own), *[1.0] * (number - len(own))])
        for p, (_, key, window, _) in zip(corrected, own, strict=False):
            found[key] = min(found.get(key, (1.0, 1)), (p, window))
    return {key: _scenario(rule, line, after, key, olds, found.get(key)) for key in olds[1]}


class _WindowTest(NamedTuple):
    p: float
    key: str
    window: int
    is_fall: bool


def _test_window(
    line: Line,
    after: Mapping[str, Sample],
    olds: Mapping[int, Mapping[str, Sample]],
    window: int,
    smallest: float,
) -> list[_WindowTest]:
    """Return Fisher's p of each scenario that changed by the smallest effect in a window."""
    old = olds[window]
    if len(line.runs) < window - 1 or not old:
        return []
    since = line.since_fixed or {}
    news = _pool(line.window(after, window), old)
    return [
        _WindowTest(within_scenario_p([arms_of(old[key], new)]), key, window, new.mean < old[key].mean)
        for key, new in news.items()
        if abs(new.mean - old[key].mean) >= smallest - 1e-12 and window <= since.get(key, window)
    ]


def _scenario(
    rule: MeasureRule,
    line: Line,
    after: Mapping[str, Sample],
    key: str,
    olds: Mapping[int, Mapping[str, Sample]],
    strongest: tuple[float, int] | None,
) -> MeasureChange:
    own, window = strongest or (1.0, 1)
    is_significant = own < AGAINST_LINE.scenarios
    if not is_significant:
        window = 1
    old = olds[window][key]
    new = _pool(line.window(after, window), {key: old})[key]
    arms, effect = arms_of(old, new), new.mean - old.mean
    lower, upper = mean_difference([(arms.before, arms.trials_before, arms.after, arms.trials_after)])
    return replace(
        count_changes(rule, [(old, new)], [effect]),
        verdict=verdict_of(
            rule, effect, (rule.smallest_effect, rule.smallest_effect), is_significant=is_significant
        ),
        effect=effect,
        lower=lower,
        upper=upper,
        test=ComparisonTest.LINE,
        p_corrected=scale_p(own, AGAINST_LINE.scenarios),
        runs_before=len(line.before(window)),
        window=window,
    )


class LineDrift(NamedTuple):
    """A line that fell by the smallest effect."""

    before: float
    """The mean of its oldest runs."""
    after: float
    is_certain: bool
    """Whether chance doesn't explain it; else it is on its way."""


def find_drift(rates: Sequence[float], smallest: float) -> LineDrift | None:
    """Return how a line fell from its oldest to its newest runs; None for one that didn't.

    Takes each run's distance from its scenarios' means, or its pass rate, oldest first; Welch's t with equal numbers.
    """
    recent = rates[-DRIFT_RUNS:]
    if len(recent) < DRIFT_FEWEST:
        return None
    old, new = recent[:DRIFT_ENDS], recent[-DRIFT_ENDS:]
    fall = fmean(old) - fmean(new)
    if fall < smallest - 1e-12:
        return None
    error = sqrt((variance(old) + variance(new)) / DRIFT_ENDS)
    is_certain = student_p(fall, error, 2 * DRIFT_ENDS - 2) < DRIFT_LEVEL
    return LineDrift(fmean(old), fmean(new), is_certain)
