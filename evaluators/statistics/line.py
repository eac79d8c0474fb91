"""Compare a run with its line: the earlier runs of the same suite and target.

Two things vary between runs: the trials, and whatever changes from run to run without anybody changing it, such as the
model behind an address. The trials' part is known from their numbers. The other part, the run-to-run variance, is what
is left of the variance of the line's means; few runs say little of it, so every value that it may have is weighed by how
well the line agrees with it. All measures here have values from 0 to 1.

numpy and scipy are imported where they are used, because they would double the time in which a web process starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import sqrt
from typing import TYPE_CHECKING

from evaluators.statistics.descriptive import Z_95, mean_difference
from evaluators.statistics.error_shares import AGAINST_LINE, ALPHA, scale_p, share_error
from evaluators.statistics.measure_change import (
    ChangeVerdict,
    ComparisonTest,
    MeasureChange,
    MeasureRule,
    Pairs,
    Sample,
    Scale,
    arms_of,
    count_changes,
    pool_samples,
)
from evaluators.statistics.measure_power import MOST_TRIALS
from evaluators.statistics.power import POWER, RELIABLE, smallest_enough
from evaluators.statistics.regression import CONFIDENCE, FEWEST_FOR_EQUIVALENCE, verdict_of, with_scenarios
from evaluators.statistics.run_variance import RunToRunVariance, run_to_run_variance
from evaluators.statistics.significance import (
    Values,
    benjamini_hochberg,
    jeffreys_variance,
    within_moments_p,
    within_scenario_p,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST_RUNS = 5
"""Fewest runs that are a line; with fewer, the run-to-run variance is hardly known, and a run is compared with one."""
MOST_RUNS = 10
"""Most runs of a line, the newest."""
Runs = Sequence[Mapping[str, Sample]]
"""A measure's samples by scenario key in each run of a line; a run may lack scenarios."""


@dataclass(frozen=True)
class LineComparison:
    """A run compared with its line."""

    headline: list[MeasureChange]
    """The pass rate's change names the scenarios that broke."""
    scenarios: dict[str, MeasureChange]
    """The pass rate's change by scenario key."""


def compare_with_line(measures: Sequence[tuple[MeasureRule, Runs, Mapping[str, Sample]]]) -> LineComparison:
    """Compare the headline measures of a run with those of its line, with one error for all and the table of scenarios.

    Takes the pass rate first, and each measure's samples in the line's runs and in the new one; only scenarios that can
    be compared may be among them. A scenario uses the runs that have it, and is left out where none has. Raises
    `ValueError` for a measure on the relative scale.
    """
    sides = [_Sides(rule, runs, after) for rule, runs, after in measures]
    ps = [each.p for each in sides]
    has_passes = bool(sides) and sides[0].rule.is_outcome and ps[0] is not None
    levels = share_error(ps, AGAINST_LINE, has_passes=has_passes)
    headline = [_judge_change(each, p, share) for each, (p, share) in zip(sides, levels, strict=True)]
    table = _scenarios(sides[0]) if has_passes else {}
    if has_passes:
        headline[0] = with_scenarios(headline[0], table)
    return LineComparison(headline, table)


class _Sides:
    """One measure in the line and in the new run, over the scenarios that both have."""

    def __init__(self, rule: MeasureRule, runs: Runs, after: Mapping[str, Sample]) -> None:
        if rule.scale is not Scale.POINTS:
            raise ValueError(f"{rule.name} isn't a measure from 0 to 1, so it can't be compared with a line.")
        self.rule = rule
        self.keys = [key for key in after if any(key in run for run in runs)]
        self.runs = [run for run in runs if any(key in run for key in self.keys)]
        self.old = {
            key: reduce(pool_samples, (run[key] for run in self.runs if key in run)) for key in self.keys
        }
        self.new = {key: after[key] for key in self.keys}

    @property
    def pairs(self) -> Pairs:
        return [(self.old[key], self.new[key]) for key in self.keys]

    @cached_property
    def differences(self) -> list[float]:
        return [new.mean - old.mean for old, new in self.pairs]

    @property
    def mean(self) -> float:
        return float(sum(self.differences) / len(self.differences))

    @cached_property
    def trial_variances(self) -> list[float]:
        """The variance of one trial of each scenario.

        A pass varies by its rate, and never not at all (Jeffreys' prior). Other values vary as those of all scenarios
        do within their runs; with single trials, as they do between runs.
        """
        if self.rule.is_outcome:
            both = [pool_samples(old, new) for old, new in self.pairs]
            return [jeffreys_variance(min(max(each.mean, 0.0), 1.0) * each.n, each.n) for each in both]
        single = [run[key] for run in self.runs for key in self.keys if key in run]
        samples = [*single, *self.new.values()]
        if all(each.n == 1 for each in samples):
            samples = [*self.old.values(), *self.new.values()]
        freedom = sum(each.n - 1 for each in samples)
        if freedom < 1:
            return []
        # One more value, as far off as the smallest effect: equal values of few trials don't mean that nothing varies.
        squares = sum(each.m2 for each in samples) + self.rule.smallest**2
        return [squares / (freedom + 1)] * len(self.keys)

    @property
    def has_variance(self) -> bool:
        return bool(self.keys and self.trial_variances)

    @cached_property
    def shares(self) -> NDArray[np.floating]:
        """Each run's share of the line's trials of each scenario, by run and scenario."""
        import numpy as np

        counts = np.array([[run[key].n if key in run else 0.0 for key in self.keys] for run in self.runs])
        shares: NDArray[np.floating] = counts / counts.sum(axis=0)
        return shares

    @cached_property
    def from_trials(self) -> float:
        """The variance of the mean difference that comes from trials, of both sides at their own counts."""
        rows = zip(self.trial_variances, self.pairs, strict=True)
        return sum(variance * (1 / old.n + 1 / new.n) for variance, (old, new) in rows) / len(self.keys) ** 2

    @cached_property
    def from_runs(self) -> float:
        """What the run-to-run variance is multiplied with: 1 for the new run, and for the line its runs' weights."""
        weights = self.shares.mean(axis=1)
        return 1.0 + float((weights**2).sum())

    @cached_property
    def drift(self) -> RunToRunVariance:
        """How the line's means vary from run to run beyond their trials."""
        import numpy as np

        means = np.array([[run[key].mean if key in run else 0.0 for key in self.keys] for run in self.runs])
        counts = np.array([[run[key].n if key in run else 0 for key in self.keys] for run in self.runs])
        return run_to_run_variance(means, counts, np.array(self.trial_variances))

    @cached_property
    def p(self) -> float | None:
        """The p of the mean difference: the larger of two, None where nothing says how much trials vary.

        One permutes trials between the line and the run within each scenario, which is exact for few trials and near
        0 or 100 %; the other has the run-to-run variance.
        """
        if not self.has_variance:
            return None
        drifted = self.drift.tail(self.mean, self.from_trials, self.from_runs)
        if self.rule.is_outcome:
            return max(drifted, within_scenario_p([arms_of(*pair) for pair in self.pairs], mid=True))
        values = [Values(old.n, old.mean, old.m2, new.n, new.mean, new.m2) for old, new in self.pairs]
        return max(drifted, within_moments_p(values))


def _judge_change(sides: _Sides, corrected: float | None, share: float) -> MeasureChange:
    """Return the change of the whole with its verdict; `share` is the part of the error that its test has."""
    rule, pairs = sides.rule, sides.pairs
    if not pairs:
        return MeasureChange(rule, ChangeVerdict.NOT_COMPARABLE, 0, runs_before=len(sides.runs))
    sizes = _Sizes(sides.mean, sides, share) if sides.has_variance else None
    is_significant = corrected is not None and corrected < ALPHA
    is_large = abs(sides.mean) >= rule.smallest - 1e-12
    lower, upper = sizes.interval(CONFIDENCE) if sizes else (None, None)
    return replace(
        count_changes(rule, pairs, sides.differences),
        verdict=verdict_of(
            rule,
            sides.mean,
            (rule.smallest, RELIABLE * rule.smallest),
            is_significant=is_significant,
            is_equivalent=lambda: sizes is not None and sizes.is_equivalent(),
            is_enough=lambda: sizes is not None and sizes.detectable <= RELIABLE * rule.smallest,
        ),
        effect=sides.mean,
        lower=lower,
        upper=upper,
        test=ComparisonTest.LINE if sizes else ComparisonTest.NONE,
        p=sides.p,
        corrected=corrected,
        detectable=sizes.detectable if sizes else None,
        more_trials=sizes.more_trials() if sizes else None,
        below_threshold=is_significant and not is_large,
        runs_before=len(sides.runs),
        run_to_run=sides.drift.deviation if sizes else None,
    )


def _quantiles(drift: RunToRunVariance, share: float, trials: float, runs: float) -> tuple[float, float]:
    """Return the difference that is significant, and by how much a true one must exceed it to be found with `POWER`.

    A difference is missed as often as chance makes up for what exceeds the limit: one tail of 1 - POWER.
    """
    return drift.quantile(share, trials, runs), drift.quantile(2 * (1 - POWER), trials, runs)


def detectable_against_line(
    rates: Sequence[float],
    before: Sequence[int],
    after: Sequence[int],
    run_rates: Sequence[float],
    smallest: float,
) -> float:
    """Return the smallest change of the pass rate that a run finds against its line with `POWER`, 0 to 1.

    Takes each scenario's true rate, its trials in the whole line and in the new run, and the line's pass rates by run.
    """
    import numpy as np

    count, runs = len(rates), len(run_rates)
    trial = [rate * (1 - rate) for rate in rates]
    rows = zip(trial, before, after, strict=True)
    from_trials = sum(variance * (1 / n + 1 / m) for variance, n, m in rows) / count**2
    # A run's pass rate as one value, with the variance that its trials give it.
    of_run = sum(variance * runs / n for variance, n in zip(trial, before, strict=True)) / count**2
    one = np.ones((runs, 1), int)
    drift = run_to_run_variance(np.array(run_rates)[:, None], one, np.array([of_run]))
    limit, excess = _quantiles(drift, AGAINST_LINE.pass_rate, from_trials, 1 + 1 / runs)
    return min(1.0, max(limit, smallest) + excess)


class _Sizes:
    """The sizes of change that a run against its line can show."""

    def __init__(self, mean: float, sides: _Sides, share: float) -> None:
        self.mean, self.sides, self.share = mean, sides, share

    def interval(self, confidence: float) -> tuple[float, float]:
        half = self.sides.drift.quantile(1 - confidence, self.sides.from_trials, self.sides.from_runs)
        return max(-1.0, self.mean - half), min(1.0, self.mean + half)

    def is_equivalent(self) -> bool:
        """Return whether the 90 % interval lies within the smallest effect (two one-sided tests, Schuirmann 1987)."""
        if len(self.sides.keys) < FEWEST_FOR_EQUIVALENCE:
            return False
        lower, upper = self.interval(1 - 2 * ALPHA)
        return max(-lower, upper) < self.sides.rule.smallest

    @cached_property
    def detectable(self) -> float:
        """The smallest difference that is found in `POWER` of the cases."""
        return self._detectable(self.sides.from_trials)

    def _detectable(self, trials: float) -> float:
        return sum(_quantiles(self.sides.drift, self.share, trials, self.sides.from_runs))

    def more_trials(self) -> int | None:
        """Return how many more trials of each scenario the new run needs to find `RELIABLE` times the smallest effect.

        None where no number is enough, because the runs of the line differ too much or have too few trials.
        """
        sides, wanted = self.sides, RELIABLE * self.sides.rule.smallest
        rows = list(zip(sides.trial_variances, sides.pairs, strict=True))
        count = len(rows) ** 2
        old = sum(variance / before.n for variance, (before, _) in rows) / count

        def finds(more: int) -> bool:
            new = sum(variance / (after.n + more) for variance, (_, after) in rows) / count
            return self._detectable(old + new) <= wanted

        if self.detectable <= wanted:
            return 0
        # Asked first because most lines have no such number.
        return smallest_enough(finds, MOST_TRIALS) if finds(MOST_TRIALS) else None


def _scenarios(sides: _Sides) -> dict[str, MeasureChange]:
    """Return the pass rate's change of each scenario against the line's trials of it (Fisher's exact test).

    Corrected over all of them (Benjamini and Hochberg). A run that drifts as the line's runs do takes all scenarios with
    it, so the run-to-run variance counts here, too.
    """
    weights = sides.shares
    ps: list[float] = []
    for place, (old, new) in enumerate(sides.pairs):
        variance = sides.trial_variances[place] * (1 / old.n + 1 / new.n)
        runs = 1.0 + float((weights[:, place] ** 2).sum())
        drifted = sides.drift.tail(new.mean - old.mean, variance, runs)
        ps.append(max(drifted, within_scenario_p([arms_of(old, new)])))
    corrected = [scale_p(p, AGAINST_LINE.scenarios) for p in benjamini_hochberg(ps)]
    return {key: _scenario(sides, key, p, own) for key, p, own in zip(sides.keys, ps, corrected, strict=True)}


def _scenario(sides: _Sides, key: str, p: float, corrected: float) -> MeasureChange:
    old, new = sides.old[key], sides.new[key]
    arms, rule = arms_of(old, new), sides.rule
    effect = new.mean - old.mean
    low, high = mean_difference([(arms.before, arms.trials_before, arms.after, arms.trials_after)])
    drift = Z_95 * sides.drift.deviation
    is_significant, is_large = corrected < ALPHA, abs(effect) >= rule.smallest - 1e-12
    return replace(
        count_changes(rule, [(old, new)], [effect]),
        verdict=verdict_of(
            rule, effect, (rule.smallest, RELIABLE * rule.smallest), is_significant=is_significant
        ),
        effect=effect,
        lower=max(-1.0, effect - sqrt((effect - low) ** 2 + drift**2)),
        upper=min(1.0, effect + sqrt((high - effect) ** 2 + drift**2)),
        test=ComparisonTest.LINE,
        p=p,
        corrected=corrected,
        below_threshold=is_significant and not is_large,
        runs_before=sum(key in run for run in sides.runs),
    )
