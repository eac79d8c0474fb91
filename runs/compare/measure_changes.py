"""Compare every measure of two runs over the scenarios that can be compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from evalhub.teams.models import Project
from evaluators.statistics.comparability import Reasons, outcome_reasons, parts_of
from evaluators.statistics.line import FEWEST_RUNS, MOST_RUNS, RECENT, Line, compare_with_line, spread_of
from evaluators.statistics.looks import ONE_LOOK, Levels
from evaluators.statistics.measure_change import (
    ChangeVerdict,
    MeasureChange,
    MeasureRule,
    Sample,
    Scale,
    Spread,
    pool_samples,
)
from evaluators.statistics.regression import (
    compare_headline,
    compare_measures,
    compare_scenarios,
    decide_overall,
    with_scenarios,
)
from runs.compare.looks import Extension, read_levels
from runs.models import LaterMeasure, Measure, Run, RunMeasure
from runs.models.run import reason_without_verdict
from runs.results.comparability import gates_changed_since, parts_changed_since
from runs.results.counting import find_common_exit_sources

PASS = "trial/pass"  # noqa: S105 (a measure's name, not a password)
HEADLINE = (PASS, "judge/judge", "interaction/first_try_success_rate", "interaction/error_rate")
"""The measures that decide a run's verdict, the pass rate first."""
LAYER_1 = "interaction"
SMALLEST_SHARE = 0.1
"""The smallest effect of interest on counts, cost and time, as a share."""
_POINTS = frozenset(("rate", "score", "ratio"))
"""Units of values from 0 to 1."""
_OUTCOMES = frozenset(("gates", "assertions"))
"""Layers whose values are all passed or failed."""

MeasureSamples = tuple[MeasureRule, dict[str, Sample], dict[str, Sample]]
"""A measure's rule, and its samples before and after by scenario key."""


class _Measured(NamedTuple):
    """A measure with its samples before and after by scenario key."""

    layer: str
    name: str
    rule: MeasureRule
    before: dict[str, Sample]
    after: dict[str, Sample]


@dataclass(frozen=True)
class RunComparison:
    """Two runs, measure by measure."""

    headline: tuple[MeasureChange, ...]
    others: tuple[MeasureChange, ...]
    scenarios: dict[str, MeasureChange]
    """The pass rate's change by scenario key, where it can be compared."""
    reasons: dict[str, Reasons] = field(default_factory=dict)
    """What changed in each scenario, by key."""
    common: int = 0
    """Scenarios that both runs have results of."""
    samples: Mapping[str, MeasureSamples] = field(default_factory=dict, repr=False)
    """Each measure's rule and its samples before and after by scenario key, where they can be compared."""
    no_verdict: str = ""
    """Why there is no verdict, as the run says that has the reason.

    Nothing is compared then. Of a run that nothing checked, all measures but its outcomes are.
    """
    verdict_reason: str | None = None
    """The same for machines."""
    exit_sources: tuple[str, ...] = ()
    """The sources of exit codes by which layer 1 is compared: recorded, reported or estimated."""
    levels: Levels = ONE_LOOK
    """The levels of the pass rate and the table of scenarios, lower where trials were added after a look."""

    @property
    def verdict(self) -> ChangeVerdict | None:
        """The verdict of the whole; None if something is in its way."""
        return None if self.no_verdict else decide_overall(self.headline)

    @property
    def pass_rate(self) -> MeasureChange | None:
        """The pass rate's change; None if no scenario has results in both."""
        return next((each for each in self.headline if each.measure == PASS), None)

    @property
    def not_comparable(self) -> dict[str, Reasons]:
        """The scenarios whose outcomes cannot be compared, with what changed."""
        return outcome_reasons(self.reasons)

    @property
    def comparable(self) -> int:
        """Scenarios whose outcomes can be compared."""
        return self.pass_rate.scenarios if self.pass_rate else 0


def compare_run_measures(before: Run, after: Run) -> RunComparison:
    """Compare two closed runs from their rollups. One to three queries."""
    return compare_with_first(before, [after])[0]


def compare_with_first(
    base: Run,
    others: Sequence[Run],
    only: Collection[str] = (),
    spreads: Mapping[str, Spread] | None = None,
    extensions: Sequence[Extension] = (),
) -> list[RunComparison]:
    """Compare each later run with the first, for all measures or those named. One to three queries.

    Two more for each pair whose later rounds count: those of its looks, and of `extensions`. `spreads` is that of
    `compare_headline`.
    """
    reasons = parts_changed_since(base, others)
    changed = [[key for key, why in each.items() if "gates" in why] for each in reasons]
    gates = gates_changed_since(base, list(zip(others, changed, strict=True)))
    asked = [read_levels(base, run, extensions) for run in others]
    first = [run for run, levels in zip(others, asked, strict=True) if levels is None]
    samples = samples_by_measure([base, *first], only) if first else {}
    compared = []
    for run, why, changed_gates, levels in zip(others, reasons, gates, asked, strict=True):
        own = samples if levels is None else samples_by_measure([base, run], only, later=True)
        comparison = _compare(_find_measured(base, run, own), why, changed_gates, levels or ONE_LOOK, spreads)
        ends = _ends(base, run, own)
        compared.append(without_verdict(replace(comparison, exit_sources=ends), (base, run)))
    return compared


@dataclass(frozen=True)
class LineRuns:
    """The earlier runs of a line, newest first, those that wait for a decision before the others."""

    runs: tuple[Run, ...] = ()
    reasons: tuple[Mapping[str, Reasons], ...] = ()
    """What changed in each scenario since each of them, by key."""
    pending: int = 0
    since_fixed: Mapping[str, int] = field(default_factory=dict)
    largest: int = RECENT
    """As the last three of `evaluators.statistics.line.Line`."""

    @property
    def old(self) -> tuple[Run, ...]:
        """The runs that the new one alone is compared with, at most `MOST_RUNS`."""
        return self.runs[self.pending :][:MOST_RUNS]

    def line(self, rule: MeasureRule, samples: Mapping[int, Mapping[str, Sample]]) -> Line:
        """Return the line of a measure, from its samples by run and scenario key.

        Each scenario has the runs in which it has the same content.
        """
        layer, _, name = rule.measure.partition("/")
        parts = parts_of(layer, name)
        runs = [
            {
                key: sample
                for key, sample in samples.get(run.pk, {}).items()
                if not parts & set(why.get(key, ()))
            }
            for run, why in zip(self.runs, self.reasons, strict=True)
        ]
        return Line(runs, self.pending, self.since_fixed, self.largest)


def against_line(compared: RunComparison, earlier: LineRuns, new: Run) -> RunComparison:
    """Return a comparison whose headline measures and scenarios are those of a run against its line. One query.

    Takes the run's comparison with the newest run of the line, which keeps its headline where the line is too short.
    """
    if compared.no_verdict:
        return compared
    samples = samples_by_measure([*earlier.runs, new], HEADLINE)
    measures = {}
    for (layer, name, unit, better), sides in samples.items():
        rule = rule_of(new.project, layer, name, unit, better)
        if rule.measure not in HEADLINE or new.pk not in sides:
            continue
        line = earlier.line(rule, sides)
        if any(sides[new.pk].keys() & each.keys() for each in line.runs) or rule.measure == PASS:
            measures[rule.measure] = (rule, line, sides[new.pk])
    line_changes = compare_with_line([measures[name] for name in HEADLINE if name in measures])
    left_out = {
        key: next((why[key] for why in earlier.reasons if key in why), ())
        for key in (measures[PASS][2] if PASS in measures else {})
        if key not in line_changes.scenarios
    }
    headline = line_changes.headline
    if not headline:
        headline = [
            with_scenarios(each, line_changes.scenarios) if each.measure == PASS else each
            for each in compared.headline
        ]
    return replace(
        compared,
        headline=tuple(headline),
        scenarios=line_changes.scenarios,
        reasons={key: why for key, why in left_out.items() if why},
        common=len(line_changes.scenarios) + sum(map(bool, left_out.values())),
        samples={},
    )


def spreads_of(earlier: LineRuns, new: Run) -> dict[str, Spread]:
    """Return how much each headline measure varies from run to run of a line, by name. One query, none without one."""
    if len(earlier.old) < FEWEST_RUNS:
        return {}
    spreads = {}
    for (layer, name, unit, better), sides in samples_by_measure([*earlier.old, new], HEADLINE).items():
        rule = rule_of(new.project, layer, name, unit, better)
        spread = spread_of(earlier.line(rule, sides), sides.get(new.pk, {}))
        if spread is not None:
            spreads[rule.measure] = spread
    return spreads


def with_broken(compared: RunComparison, keys: Collection[str]) -> RunComparison:
    """Return a comparison in which these scenarios broke, too."""
    if not keys or compared.pass_rate is None:
        return compared
    scenarios = {
        key: replace(change, verdict=ChangeVerdict.REGRESSED) if key in keys else change
        for key, change in compared.scenarios.items()
    }
    headline = [
        replace(each, broke=tuple(dict.fromkeys((*each.broke, *keys)))) if each.measure == PASS else each
        for each in compared.headline
    ]
    return replace(compared, headline=tuple(headline), scenarios=scenarios)


def without_verdict(compared: RunComparison, runs: Sequence[Run]) -> RunComparison:
    """Return a comparison without measures that one of the runs can't have."""
    stopped = next((run for run in sorted(runs, key=lambda run: not run.is_unusable) if run.no_verdict), None)
    if stopped is None:
        return compared
    why, reason = stopped.no_verdict, reason_without_verdict(stopped)
    if stopped.is_unusable:
        return RunComparison(
            (), (), {}, compared.reasons, compared.common, no_verdict=why, verdict_reason=reason
        )
    headline = tuple(each for each in compared.headline if each.measure != PASS)
    samples = {name: each for name, each in compared.samples.items() if name != PASS}
    return replace(
        compared, headline=headline, scenarios={}, samples=samples, no_verdict=why, verdict_reason=reason
    )


def _ends(before: Run, after: Run, samples: _Samples) -> tuple[str, ...]:
    keys = {
        key
        for (layer, *_), sides in samples.items()
        if layer == LAYER_1
        for key in sides.get(before.pk, {}).keys() & sides.get(after.pk, {}).keys()
    }
    return tuple(find_common_exit_sources(before.counting, after.counting, sorted(keys)))


def _compare(
    measured: Sequence[_Measured],
    reasons: Mapping[str, Reasons],
    gates: Mapping[str, frozenset[str]],
    levels: Levels,
    spreads: Mapping[str, Spread] | None,
) -> RunComparison:
    usable = [_comparable(each, reasons, gates) for each in measured]
    named = {each.rule.measure: (each.rule, each.before, each.after) for each in usable}
    passes = next((each for each in measured if each.rule.measure == PASS), None)
    return replace(
        compare_samples(named, levels, spreads),
        reasons={key: why for key, why in reasons.items() if passes is None or key in passes.after},
        common=len(passes.before.keys() & passes.after.keys()) if passes else 0,
        samples=named,
    )


def compare_samples(
    named: Mapping[str, MeasureSamples], levels: Levels, spreads: Mapping[str, Spread] | None = None
) -> RunComparison:
    """Return the comparison of measures, by their names; it doesn't keep the samples."""
    headline = compare_headline([named[name] for name in HEADLINE if name in named], levels, spreads=spreads)
    others = compare_measures([each for name, each in named.items() if name not in HEADLINE])
    scenarios = compare_scenarios(*named[PASS], levels.scenarios) if PASS in named else {}
    return RunComparison(tuple(headline), tuple(others), scenarios, levels=levels)


def rule_of(project: Project, layer: str, name: str, unit: str, better: str) -> MeasureRule:
    """Return how a project compares a measure."""
    scale = Scale.POINTS if unit in _POINTS else Scale.RELATIVE
    default = project.smallest_effect if scale is Scale.POINTS else SMALLEST_SHARE
    smallest: Mapping[str, float] = project.smallest_effects
    is_outcome = layer in _OUTCOMES or f"{layer}/{name}" == PASS
    full = f"{layer}/{name}"
    return MeasureRule(full, better, scale, smallest.get(full, default), is_outcome)


def smallest_of_pass_rate(project: Project) -> float:
    """Return the smallest effect of interest on the pass rate, 0 to 1."""
    smallest: Mapping[str, float] = project.smallest_effects
    return smallest.get(PASS, project.smallest_effect)


_Named = tuple[str, str, str, str]
"""A measure's layer, name, unit and direction."""
_Samples = dict[_Named, dict[int, dict[str, Sample]]]
"""By measure, run and scenario key."""


def samples_by_measure(runs: Sequence[Run], only: Collection[str], *, later: bool = False) -> _Samples:
    """Return runs' samples of all measures or those named, with their later rounds if asked. One query, or two."""
    by_table = [_rows(RunMeasure, runs, only), _rows(LaterMeasure, runs, only)][: 1 + later]
    samples: _Samples = {}
    for run, key, n, mean, m2, layer, name, unit, better in chain.from_iterable(by_table):
        by_scenario = samples.setdefault((layer, name, unit, better), {}).setdefault(run, {})
        sample = Sample(n, mean, m2)
        by_scenario[key] = pool_samples(by_scenario[key], sample) if key in by_scenario else sample
    return samples


def _rows(
    table: type[RunMeasure | LaterMeasure], runs: Sequence[Run], only: Collection[str]
) -> QuerySet[Any, Any]:
    rows = table.objects.filter(run__in=runs).exclude(scenario=None)
    if only:
        names = [Q(layer=layer, name=name) for layer, _, name in (each.partition("/") for each in only)]
        rows = rows.filter(measure__in=Measure.objects.filter(reduce(or_, names)).values("pk"))
    columns = ("measure__layer", "measure__name", "measure__unit", "measure__better")
    return rows.values_list("run", "scenario__key", "n", "mean", "m2", *columns)


def read_samples(runs: Sequence[Run], names: Collection[str]) -> dict[str, dict[int, dict[str, Sample]]]:
    """Return measures' samples of first rounds, by name, run and scenario key. One query, none without names."""
    samples = samples_by_measure(runs, names) if names else {}
    return {f"{layer}/{name}": sides for (layer, name, _, _), sides in samples.items()}


def _find_measured(before: Run, after: Run, samples: _Samples) -> list[_Measured]:
    """Return the measures that both runs have."""
    return [
        _Measured(
            layer,
            name,
            rule_of(after.project, layer, name, unit, better),
            sides[before.pk],
            sides[after.pk],
        )
        for (layer, name, unit, better), sides in sorted(samples.items())
        if before.pk in sides and after.pk in sides
    ]


def _comparable(
    measured: _Measured, reasons: Mapping[str, Reasons], gates: Mapping[str, frozenset[str]]
) -> _Measured:
    """Return the measure without the scenarios in which something changed that it depends on."""
    left = {
        key: sample
        for key, sample in measured.after.items()
        if not _has_changed(measured, reasons.get(key, ()), gates.get(key, frozenset()))
    }
    return measured._replace(after=left)


def _has_changed(measured: _Measured, why: Reasons, gates: frozenset[str]) -> bool:
    parts = parts_of(measured.layer, measured.name) & set(why)
    if measured.layer == "gates" and measured.name not in gates:
        parts -= {"gates"}
    return bool(parts)
