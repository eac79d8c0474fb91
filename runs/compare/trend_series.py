"""Read a trend: its filters, its runs, and how measures and subcommands changed over them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import QueryDict

from evalhub.web.paging import key_of
from evaluators.statistics.change_points import FEWEST_RUNS, ChangePoint, find_changes
from evaluators.statistics.comparability import parts_of
from evaluators.statistics.descriptive import Z_95, wilson_interval
from evaluators.statistics.measure_change import ChangeVerdict
from runs.compare.measure_changes import HEADLINE, PASS
from runs.models import Alert, Change, Measure, Run, RunMeasure, SubcommandMeasure
from runs.models.comparison import OF_SUITE, state_label
from runs.models.run import MAINLINE, NOT_CONFIRMING, OPEN, RunState, has_too_many_errors
from runs.models.run_options import DEFAULT_SECONDS
from runs.results.address_filters import AddressFilters
from runs.results.comparability import (
    UNJUDGED,
    Configuration,
    ScoreSources,
    both_known,
    changed_between,
    judge_named,
    read_standards,
)
from runs.results.measures import label_of

MOST_RUNS = 100
"""Newest runs of a trend."""


@dataclass(frozen=True)
class TrendFilters(AddressFilters):
    """Filters of a query string; an empty text isn't a filter."""

    target: str = ""
    model: str = ""
    tool_version: str = ""
    guidance: str = ""
    """A key of `Guidance`."""
    branch: str = ""

    def condition(self) -> Q:
        """Return the filters as one condition on runs."""
        columns = {"target__name": self.target, "model": self.model, "tool_version": self.tool_version}
        condition = Q(**{column: value for column, value in columns.items() if value})
        if self.guidance:
            condition &= Q(guidance=key_of(self.guidance) or 0)
        return condition & Q(branch=self.branch) if self.branch else condition


class TrendRun(NamedTuple):
    """A closed run, as far as a trend shows it."""

    pk: int
    at: datetime
    tool_version: str
    guidance: int | None
    guidance_name: str
    target: str
    model: str
    branch: str
    configuration: Configuration
    """Without prices: a trend shows what was paid."""
    suite_number: int
    passed: int
    failed: int
    is_experiment: bool
    regressed: bool
    alert: str
    """The label of its alert's state; empty without one."""
    is_stale: bool
    """Whether the suite's files were outdated for the tool."""
    baseline: int | None
    completed: bool
    """Whether the run finished without an error of its own."""
    is_unusable: bool
    """Whether its errors or its tool are in the way of a verdict, or nothing checked its trials."""


_COLUMNS = (
    "pk",
    "at",
    "tool_version",
    "guidance",
    "guidance__name",
    "guidance__number",
    "target__name",
    "model",
    "branch",
    "options__judge",
    "options__threshold",
    "options__timeout_seconds",
    "fingerprint__judge",
    "fingerprint__judge_sha256",
    "fingerprint__adopted",
    "fingerprint__command_pattern",
    "counting",
    "suite_version",
    "suite_version__number",
    "passed",
    "failed",
    "errors",
    "not_started",
    "is_unchecked",
    "is_experiment",
    "verdict",
    "alert_state",
    "alert_kind",
    "fingerprint__staleness__stale",
    "baseline",
    "state",
    "error",
)


@dataclass(frozen=True)
class TrendChoices:
    """The values of a suite's newest runs, newest first."""

    targets: list[str]
    models: list[str]
    tool_versions: list[str]
    guidance: list[tuple[str, str]]
    branches: list[str]


class Mark(NamedTuple):
    """A change of what ran before the run at a position."""

    at: int
    flags: str
    words: str


def newest_runs_of_suite(suite: int, filters: TrendFilters) -> list[TrendRun]:
    """Return a suite's newest closed runs, oldest first. One query, by index."""
    return [_run(row) for row in _rows(suite, filters)][::-1]


def _rows(suite: int, filters: TrendFilters) -> QuerySet[Run, Any]:
    runs = (
        Run.objects.filter(filters.condition(), NOT_CONFIRMING, suite=suite)
        .exclude(state__in=OPEN)
        .order_by("-pk")
    )
    alerts = Alert.objects.filter(run=OuterRef("pk"), kind__in=OF_SUITE)
    return runs.annotate(
        at=Coalesce("finished", "created"),
        alert_state=Subquery(alerts.values("state")[:1]),
        alert_kind=Subquery(alerts.values("kind")[:1]),
    ).values(*_COLUMNS)[:MOST_RUNS]


def _run(row: Mapping[str, Any]) -> TrendRun:
    number = row["guidance__number"]
    return TrendRun(
        pk=row["pk"],
        at=row["at"],
        tool_version=row["tool_version"],
        guidance=row["guidance"],
        guidance_name=row["guidance__name"] or (f"guidance {number}" if number else ""),
        target=row["target__name"],
        model=row["model"],
        branch=row["branch"],
        configuration=_configuration(row),
        suite_number=row["suite_version__number"],
        passed=row["passed"],
        failed=row["failed"],
        is_experiment=row["is_experiment"],
        regressed=row["verdict"] == ChangeVerdict.REGRESSED,
        alert=state_label(row["alert_state"], row["alert_kind"]) if row["alert_state"] else "",
        is_stale=bool(row["fingerprint__staleness__stale"]),
        baseline=row["baseline"],
        completed=row["state"] == RunState.FINISHED and not row["error"],
        is_unusable=bool(row["not_started"])
        or row["is_unchecked"]
        or has_too_many_errors(row["passed"], row["failed"], row["errors"]),
    )


def _configuration(row: Mapping[str, Any]) -> Configuration:
    judged, name, sha256 = (
        row[key] for key in ("options__judge", "fingerprint__judge", "fingerprint__judge_sha256")
    )
    sources = ScoreSources(
        judge=judge_named(judged, name, sha256),
        pattern=row["fingerprint__command_pattern"] or "",
        threshold=row["options__threshold"],
        seconds=row["options__timeout_seconds"] or DEFAULT_SECONDS,
    )
    return Configuration(row["suite_version"], sources, row["fingerprint__adopted"], row["counting"])


def choices_of(runs: Sequence[TrendRun]) -> TrendChoices:
    """Return the choices of a trend's filters from runs, oldest first."""
    newest = runs[::-1]
    return TrendChoices(
        _distinct(run.target for run in newest),
        _distinct(run.model for run in newest),
        _distinct(run.tool_version for run in newest),
        list({str(run.guidance): run.guidance_name for run in newest if run.guidance}.items()),
        _distinct(run.branch for run in newest),
    )


def _distinct(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]


def read_trend_filters(query: QueryDict, runs: Sequence[TrendRun]) -> TrendFilters:
    """Read the filters; without a target or model in the address, choose those of the newest run.

    Runs of several targets aren't comparable, so a page opens with one of them.
    """
    filters = TrendFilters.of(query)
    if runs and "target" not in query and "model" not in query:
        return replace(filters, target=runs[-1].target, model=runs[-1].model)
    return filters


def is_of_line(run: TrendRun, filters: TrendFilters) -> bool:
    """Return whether a run counts for change points: measured, on the chosen or main branch, no experiment."""
    is_measured = run.completed and not run.is_unusable
    return is_measured and not run.is_experiment and run.branch in (filters.branch, *MAINLINE)


def find_version_marks(runs: Sequence[TrendRun]) -> list[Mark]:
    """Return the changes of tool (T), guidance (G), model (M), judge (J) and suite (S) between runs."""
    all_marks = []
    for at, (before, after) in enumerate(pairwise(runs), 1):
        changed = _find_changes(before, after)
        if changed:
            all_marks.append(Mark(at, "".join(changed), ", ".join(changed.values())))
    return all_marks


def _find_changes(before: TrendRun, after: TrendRun) -> dict[str, str]:
    old, new = before.configuration, after.configuration
    words: dict[str, tuple[object, object, str]] = {
        "T": (before.tool_version, after.tool_version, f"tool {after.tool_version or 'unknown'}"),
        "G": (before.guidance, after.guidance, after.guidance_name or "no guidance"),
        "M": (
            (before.target, before.model),
            (after.target, after.model),
            f"model {after.model or after.target}",
        ),
        "J": (old.sources.judge, new.sources.judge, _judge_words(new.sources.judge)),
        "S": (old.suite_version, new.suite_version, f"suite version {after.suite_number}"),
    }
    return {flag: text for flag, (one, other, text) in words.items() if one != other}


def _judge_words(judge: str) -> str:
    return "no judge" if judge == UNJUDGED else f"judge {judge.partition(' ')[0] or 'unknown'}"


OVERVIEW = (*HEADLINE, "trial/cost_usd", "trial/seconds")
"""The measures that a page opens with."""
MOST_SUBCOMMANDS = 6
_RUNS_FOR_MEASURES = 20
"""Newest runs searched for choices of measures."""


class TrendValue(NamedTuple):
    """A run's value with its 95 % interval; without ends if there is none."""

    at: int
    """Position of the run in the trend."""
    value: float
    n: int
    low: float | None = None
    high: float | None = None

    @property
    def half(self) -> float | None:
        """Return half the interval's width before it was cut at the ends of the scale."""
        if self.low is None or self.high is None:
            return None
        return max(self.high - self.value, self.value - self.low)


@dataclass(frozen=True)
class TrendSeries:
    """A measure, or the error rate of a subcommand, over a trend's runs."""

    name: str
    label: str
    unit: str
    better: str
    values: list[TrendValue]
    changes: list[ChangePoint]
    """With the positions of runs in the trend."""
    baseline: float | None = None
    of: str = "scenarios"
    """What n counts."""
    regressed: frozenset[int] = frozenset()
    """Positions of the runs in which this measure regressed."""

    @property
    def is_share(self) -> bool:
        """Return whether values are between 0 and 1."""
        return self.unit in ("rate", "score")

    def at(self, place: int) -> TrendValue | None:
        """Return the value of the run at a position; None if it wasn't measured."""
        return next((each for each in self.values if each.at == place), None)


def measures_of(runs: Sequence[TrendRun]) -> list[Measure]:
    """Return the measures of the newest runs. One query."""
    newest = [run.pk for run in runs[-_RUNS_FOR_MEASURES:]]
    measured = RunMeasure.objects.filter(run__in=newest, scenario=None)
    return list(Measure.objects.filter(pk__in=measured.values("measure")))


def choose_series(measures: Sequence[Measure], name: str) -> list[Measure]:
    """Return the measure of a name, else those of the overview, else the first."""
    by_name = {str(each): each for each in measures}
    if name in by_name:
        return [by_name[name]]
    return [by_name[each] for each in OVERVIEW if each in by_name] or list(measures[:1])


def series_of(
    measures: Sequence[Measure],
    runs: Sequence[TrendRun],
    filters: TrendFilters,
    baseline: int | None,
) -> list[TrendSeries]:
    """Return measures over runs, oldest first. Two queries, three where runs used several versions of the suite."""
    read = moments_by_measure(measures, {*(run.pk for run in runs), *([baseline] if baseline else [])})
    steps = _Steps(runs, filters) if may_have_change_points(runs, filters) else None
    regressed = _regressed_measures(runs)
    return [
        replace(
            _series(measure, runs, read[measure.pk], steps, baseline),
            regressed=regressed[str(measure)],
        )
        for measure in measures
    ]


def _regressed_measures(runs: Sequence[TrendRun]) -> defaultdict[str, frozenset[int]]:
    """Return by measure the positions of the runs in which it regressed. One query, none without such runs.

    Runs of older releases may not know in which measure: it is the pass rate's.
    """
    places = {run.pk: at for at, run in enumerate(runs) if run.regressed}
    positions: defaultdict[str, frozenset[int]] = defaultdict(frozenset)
    if not places:
        return positions
    rows = Change.objects.filter(run__in=places, scenario=None).select_related("measure")
    lost = [
        (row.run_id, str(row.measure))
        for row in rows
        # The pass rate regresses by single scenarios that broke, too.
        if row.verdict == ChangeVerdict.REGRESSED or row.detail.get("broke")
    ]
    unknown = ((run, PASS) for run in places.keys() - {run for run, _ in lost})
    for run, measure in (*lost, *unknown):
        positions[measure] |= {places[run]}
    return positions


def may_have_change_points(runs: Sequence[TrendRun], filters: TrendFilters) -> bool:
    """Return whether change points are searched: at least six runs of the line, of one target and model."""
    line = [run for run in runs if is_of_line(run, filters)]
    return len(line) >= FEWEST_RUNS and len({(run.target, run.model) for run in line}) == 1


def moments_by_measure(
    measures: Iterable[Measure], runs: Collection[int]
) -> defaultdict[int, dict[int, tuple[int, float, float]]]:
    """Return n, mean and m2 over scenarios by measure and run. One query."""
    rows = RunMeasure.objects.filter(measure__in=[each.pk for each in measures], scenario=None, run__in=runs)
    moments: defaultdict[int, dict[int, tuple[int, float, float]]] = defaultdict(dict)
    for measure, run, n, mean, m2 in rows.values_list("measure_id", "run_id", "n", "mean", "m2"):
        moments[measure][run] = (n, mean, m2)
    return moments


def _series(
    measure: Measure,
    runs: Sequence[TrendRun],
    read: Mapping[int, tuple[int, float, float]],
    steps: _Steps | None,
    baseline: int | None,
) -> TrendSeries:
    values = [_value(at, *read[run.pk], measure.unit) for at, run in enumerate(runs) if run.pk in read]
    changes = list(steps.changes(measure, values)) if steps else []
    base = read[baseline][1] if baseline is not None and baseline in read else None
    return TrendSeries(str(measure), label_of(measure), measure.unit, measure.better, values, changes, base)


def _value(at: int, n: int, mean: float, m2: float, unit: str) -> TrendValue:
    if n < 2:
        return TrendValue(at, mean, n)
    half, top = Z_95 * math.sqrt(m2 / (n - 1) / n), 1.0 if unit in ("rate", "score") else math.inf
    return TrendValue(at, mean, n, max(0.0, mean - half), min(top, mean + half))


class _Steps:
    """The stretches of a trend's runs that measure the same."""

    def __init__(self, runs: Sequence[TrendRun], filters: TrendFilters) -> None:
        self.runs = runs
        self.line = {at for at, run in enumerate(runs) if is_of_line(run, filters)}
        configurations = [runs[at].configuration for at in sorted(self.line)]
        # Each with the newest: what differs between any two differs from it.
        self.known = read_standards((each, configurations[-1]) for each in configurations)
        self._changed: dict[tuple[int, int], frozenset[str] | None] = {}

    def changes(self, measure: Measure, values: Sequence[TrendValue]) -> Iterator[ChangePoint]:
        """Yield the changes of a measure within each stretch."""
        for stretch in self._stretches(measure, [each for each in values if each.at in self.line]):
            usual = Counter(each.n for each in stretch).most_common(1)[0][0]
            # A run of a selection of scenarios measures something else.
            same = [each for each in stretch if each.n == usual]
            for change in find_changes([each.value for each in same]):
                yield change._replace(at=same[change.at].at)

    def _stretches(self, measure: Measure, values: Sequence[TrendValue]) -> Iterator[list[TrendValue]]:
        stretch: list[TrendValue] = []
        for value in values:
            if stretch and not self._same(measure, self.runs[stretch[-1].at], self.runs[value.at]):
                yield stretch
                stretch = []
            stretch.append(value)
        if stretch:
            yield stretch

    def _same(self, measure: Measure, before: TrendRun, after: TrendRun) -> bool:
        """Return whether two runs have the same scenarios, as far as the measure depends on them."""
        pair = before.pk, after.pk
        if pair not in self._changed:
            self._changed[pair] = self._changed_parts(before, after)
        changed_parts = self._changed[pair]
        return changed_parts is not None and parts_of(measure.layer, measure.name).isdisjoint(changed_parts)

    def _changed_parts(self, before: TrendRun, after: TrendRun) -> frozenset[str] | None:
        """Return the parts that changed in any scenario; None where the scenarios are others."""
        judges = both_known(*(run.configuration.sources.judge for run in (before, after)))
        one, other = (
            run.configuration._replace(sources=run.configuration.sources._replace(judge=judge))
            for run, judge in zip((before, after), judges, strict=True)
        )
        if one == other:
            return frozenset()
        old, new = (self.known.standards[each.suite_version].keys() for each in (one, other))
        if old != new:
            return None
        return frozenset(chain.from_iterable(changed_between(self.known, (one, other)).values()))


def subcommand_series(runs: Sequence[TrendRun]) -> list[TrendSeries]:
    """Return the error rate of the most called subcommands over runs. One query."""
    places = {run.pk: at for at, run in enumerate(runs)}
    rows = SubcommandMeasure.objects.filter(run__in=places, scenario=None)
    counts: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    columns = ("run_id", "subcommand", "calls", "errors", "unknown")
    for run, name, called, errors, unknown in rows.values_list(*columns):
        calls = called - unknown
        if calls:
            counts[name].append((places[run], calls, errors))
    most = sorted(counts, key=lambda name: (-sum(calls for _, calls, _ in counts[name]), name))
    return [_subcommand(name, sorted(counts[name])) for name in most[:MOST_SUBCOMMANDS]]


def _subcommand(name: str, counts: Sequence[tuple[int, int, int]]) -> TrendSeries:
    values = []
    for at, calls, errors in counts:
        interval = wilson_interval(min(errors, calls), calls)
        values.append(TrendValue(at, min(errors, calls) / calls, calls, interval.lower, interval.upper))
    return TrendSeries(f"subcommand/{name}", name, "rate", "lower", values, [], of="calls")
