"""Compare two versions of guidance, measure by measure, over the runs that had each in one setting."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from django.db.models import Case, F, IntegerField, Q, Sum, When

from evalhub.teams.models import Project
from evaluators.statistics.comparability import Reasons, parts_of
from evaluators.statistics.looks import ONE_LOOK
from evaluators.statistics.measure_change import MeasureChange, Sample, pool_samples
from runs.compare.looks import levels_asked
from runs.compare.lost_scenarios import change_json
from runs.compare.measure_changes import (
    PASS,
    RunComparison,
    compare_samples,
    rule_of,
    without_verdict,
)
from runs.models import GuidanceComparison, LaterMeasure, Run, RunMeasure
from runs.models.run import MOSTLY_MEASURED, NOT_CONFIRMING, OPEN, RunState
from runs.results.comparability import parts_changed_since
from runs.results.measures import unit_of
from runs.results.rollups import scenario_series
from scenarios.models import Guidance, Scenario, Suite

MOST_READ = 250
"""The newest runs of each version that are looked through."""
MOST_SETTINGS = 12
MOST_RUNS = 20
"""Most runs of each side: the newest."""


class SharedSetting(NamedTuple):
    """What both sides have in common."""

    target: str
    model: str
    tool_version: str

    @property
    def label(self) -> str:
        return " · ".join(filter(None, self))


@dataclass(frozen=True)
class RunsBySide:
    """The runs of both sides in one setting, newest first."""

    setting: SharedSetting
    before: tuple[Run, ...]
    after: tuple[Run, ...]
    interleaved: bool
    """Whether every run has its counterpart in the same launch."""
    older: int = 0
    """Runs beyond the newest of each side, which are left out."""

    @property
    def is_open(self) -> bool:
        return any(run.state in OPEN for run in (*self.before, *self.after))

    @property
    def open_trials(self) -> int:
        return sum(run.open for run in (*self.before, *self.after))

    @property
    def how(self) -> str:
        """Say how the runs were started."""
        if self.interleaved:
            return "started together, trials in turn"
        return "started at different times, so a drift of the model may add to the difference"

    @property
    def in_turn(self) -> list[int]:
        """The runs of launches that added trials until a verdict on both versions, whose later rounds count."""
        both = {run.launch_id for run in self.before} & {run.launch_id for run in self.after}
        runs = (*self.before, *self.after)
        return [run.pk for run in runs if run.launch_id in both and run.options.get("until_decided")]

    @property
    def sentence(self) -> str:
        """Say which runs are compared."""
        older = f" {self.older} older runs are left out." if self.older else ""
        return f"A: {_name_runs(self.before)}; B: {_name_runs(self.after)}; {self.how}.{older}"


@dataclass(frozen=True)
class FoundSetting:
    """A setting in which both versions ran, with the keys of its runs, newest first."""

    setting: SharedSetting
    before: Sequence[int]
    after: Sequence[int]
    interleaved: bool
    older: int

    def load(self) -> RunsBySide:
        """Read the runs. One query."""
        rows = Run.objects.filter(pk__in=(*self.before, *self.after)).select_related("project")
        by_key = {run.pk: run for run in rows}
        before, after = (tuple(by_key[pk] for pk in side) for side in (self.before, self.after))
        return RunsBySide(self.setting, before, after, self.interleaved, self.older)


def settings_of(before: Guidance, after: Guidance, launch: int | None = None) -> list[FoundSetting]:
    """Return the settings in which both versions ran, interleaved launches first, then the newest. Two queries.

    Open runs count only within a named launch.
    """
    asked = Q(launch=launch) if launch else Q(state=RunState.FINISHED)
    asked &= MOSTLY_MEASURED | Q(open__gt=0)
    runs = Run.objects.filter(asked, NOT_CONFIRMING, suite=before.suite_id)
    columns = ("target__name", "model", "tool_version", "guidance", "launch", "pk")
    ordered = runs.order_by("-pk").values_list(*columns)
    # Each version's own, because newer runs of one may be more than are read.
    newest = chain(*(ordered.filter(guidance=each.pk)[:MOST_READ] for each in (before, after)))
    rows = [
        (SharedSetting(target, model, tool), guidance, _Key(*key))
        for target, model, tool, guidance, *key in sorted(newest, key=itemgetter(-1), reverse=True)
    ]
    return _settings_of_rows(rows, before.pk, after.pk)[:MOST_SETTINGS]


def unusable_runs(before: Guidance, after: Guidance, launch: int | None = None) -> list[Run]:
    """Return the closed runs of a launch, else of the newest one, that had one of two versions and measured nothing.

    One query, two without a named launch.
    """
    runs = Run.objects.filter(NOT_CONFIRMING, suite=before.suite_id, guidance__in=(before, after))
    launch = launch or runs.order_by("-pk").values_list("launch", flat=True).first()
    ended = runs.filter(launch=launch, state__in=(RunState.FINISHED, RunState.CANCELLED)).order_by("pk")
    return [run for run in ended.select_related("guidance") if run.error or run.is_unusable]


def _settings_of_rows(
    rows: Iterable[tuple[SharedSetting, int, _Key]], before: int, after: int
) -> list[FoundSetting]:
    """Return the settings of rows, newest first, in which both versions ran."""
    sides: dict[SharedSetting, dict[int, list[_Key]]] = {}
    for setting, guidance, key in rows:
        sides.setdefault(setting, {before: [], after: []})[guidance].append(key)
    both = [
        _choose_runs(setting, keys[before], keys[after])
        for setting, keys in sides.items()
        if keys[before] and keys[after]
    ]
    return sorted(both, key=lambda each: not each.interleaved)


class Place(NamedTuple):
    """Where versions ran: a target with a model."""

    target: str
    model: str

    @property
    def label(self) -> str:
        return " · ".join(filter(None, self))


_COLUMNS = (
    *("suite", "guidance", "target__name", "model", "tool_version", "launch"),
    *("finished", "rollups_at", "passed", "failed", "errors", "pass_rate", "not_started", "counting"),
)


def read_guidance_runs(suite: Suite, *, most: int) -> list[Run]:
    """Return a suite's newest finished runs with guidance, with the columns that pages over many need. One query."""
    runs = Run.objects.filter(NOT_CONFIRMING, suite=suite, state=RunState.FINISHED).exclude(guidance=None)
    return list(runs.order_by("-pk").select_related("target").only(*_COLUMNS)[:most])


def run_place(run: Run) -> Place:
    """Return where a run ran."""
    return Place(run.target.name, run.model)


def list_run_places(runs: Sequence[Run]) -> list[Place]:
    """Return where runs, newest first, had guidance: the place with most versions first, then the newest."""
    versions: dict[Place, set[int | None]] = {}
    for run in runs:
        versions.setdefault(run_place(run), set()).add(run.guidance_id)
    return sorted(versions, key=lambda place: -len(versions[place]))


def setting_of_pair(runs: Sequence[Run], before: int, after: int) -> FoundSetting | None:
    """Return the setting in which the page of two versions opens, of runs that are newest first; None without one."""
    rows = [
        (
            SharedSetting(run.target.name, run.model, run.tool_version),
            run.guidance_id,
            _Key(run.launch_id, run.pk),
        )
        for run in runs
        if run.guidance_id in (before, after) and not run.is_unusable
    ]
    return next(iter(_settings_of_rows(rows, before, after)), None)


class _Key(NamedTuple):
    launch: int
    run: int


def _choose_runs(setting: SharedSetting, before: Sequence[_Key], after: Sequence[_Key]) -> FoundSetting:
    """Return the runs of launches that had both versions, else all runs; the newest of each side."""
    both = {key.launch for key in before} & {key.launch for key in after}
    old, new = ([key.run for key in keys if not both or key.launch in both] for keys in (before, after))
    older = sum(max(0, len(side) - MOST_RUNS) for side in (old, new))
    return FoundSetting(setting, old[:MOST_RUNS], new[:MOST_RUNS], bool(both), older)


def _name_runs(runs: Sequence[Run]) -> str:
    return f"run{'s' * (len(runs) > 1)} {', '.join(str(run.pk) for run in runs)}"


FORM = 1
"""The form of the stored content; a release that changes it counts up."""


Side = Sequence[tuple[int, datetime | None]]
"""The runs of a side, newest first: key, and when it was measured."""


def basis_of(project: Project, before: Side, after: Side) -> str:
    """Return a hash of what a comparison is computed from."""
    parts = (FORM, [before, after], project.smallest_effect, project.smallest_effects)
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


Stored = tuple[int, int, str]
"""What a stored comparison is found by: both versions' keys, and its basis."""


def read_comparisons(wanted: Collection[Stored]) -> dict[Stored, bytes]:
    """Return the stored comparisons' contents. One query."""
    before, after, bases = zip(*wanted, strict=True) if wanted else ((), (), ())
    rows = GuidanceComparison.objects.filter(before__in=before, after__in=after, basis__in=bases)
    stored = rows.values_list("before", "after", "basis", "content")
    return {(old, new, basis): bytes(content) for old, new, basis, content in stored}


def write_comparison(before: Guidance, after: Guidance, basis: str, content: bytes) -> None:
    """Store a comparison, unless somebody stored it first. One query."""
    row = GuidanceComparison(before=before, after=after, basis=basis, content=content)
    GuidanceComparison.objects.bulk_create([row], ignore_conflicts=True)


ROUNDING = 1e-12
"""Share of the squares below which what is left after a subtraction is rounding."""
Samples = dict[str, dict[str, Sample]]
"""A measure's samples by its name and the scenario's key."""


def compare_pooled(chosen: RunsBySide) -> RunComparison:
    """Compare both sides' runs, pooled scenario by scenario by the database.

    Up to two queries; for open runs one more each, and one.

    A scenario of a run counts only where nothing that its measure depends on differs from the newest run.
    """
    changed = _find_changes(chosen)
    before, after = _samples(chosen, changed)
    named = {}
    for name in sorted(before.keys() & after.keys()):
        layer, _, measure = name.partition("/")
        unit, better = unit_of(layer, measure)
        named[name] = (
            rule_of(chosen.after[0].project, layer, measure, unit, better),
            before[name],
            after[name],
        )
    common = before.get(PASS, {}).keys() & after.get(PASS, {}).keys()
    reasons = {key: why for by_key in changed.values() for key, why in by_key.items()}
    compared = compare_samples(
        named, min(levels_asked(old, new) or ONE_LOOK for old in chosen.before for new in chosen.after)
    )
    ended = [run for run in (*chosen.before, *chosen.after) if not run.is_open]
    return without_verdict(replace(compared, reasons=reasons, common=len(common | reasons.keys())), ended)


def pooled_samples(chosen: RunsBySide) -> tuple[Samples, Samples]:
    """Return both sides' samples of every measure, where they can be compared. Up to four queries."""
    return _samples(chosen, _find_changes(chosen))


def _find_changes(chosen: RunsBySide) -> dict[int, dict[str, Reasons]]:
    """Return what differs from the newest run in each run's scenarios, by key. At most one query."""
    runs = (*chosen.before, *chosen.after)
    newest = max(runs, key=lambda run: run.pk)
    return dict(zip((run.pk for run in runs), parts_changed_since(newest, runs), strict=True))


def _samples(chosen: RunsBySide, changed: Mapping[int, Mapping[str, Reasons]]) -> tuple[Samples, Samples]:
    """Return both sides' samples, of runs and scenarios where nothing changed that their measure depends on."""
    sides: tuple[Samples, Samples] = ({}, {})
    alike: dict[tuple[int, str], list[int]] = {}
    for at, runs in enumerate((chosen.before, chosen.after)):
        for run in runs:
            if not run.is_open:
                alike.setdefault((at, repr(sorted(changed[run.pk].items()))), []).append(run.pk)
    classes = list(alike.items())
    rows: list[tuple[int, Mapping[str, Reasons], str, str, Sample]] = [
        (classes[n][0][0], changed[classes[n][1][0]], name, key, sample)
        for table, only in ((RunMeasure, None), (LaterMeasure, chosen.in_turn))
        for n, name, key, sample in _pool_closed_runs(table, [own for _, own in classes], only)
    ]
    for at, runs in enumerate((chosen.before, chosen.after)):
        rows += [(at, changed[run], name, key, sample) for run, name, key, sample in _open(runs)]
    for at, why, name, key, sample in rows:
        if not parts_of(*name.split("/", 1)) & set(why.get(key, ())):
            samples = sides[at].setdefault(name, {})
            samples[key] = pool_samples(samples[key], sample) if key in samples else sample
    return sides


def _pool_closed_runs(
    table: type[RunMeasure | LaterMeasure],
    classes: Sequence[Sequence[int]],
    only: Collection[int] | None = None,
) -> Iterator[tuple[int, str, str, Sample]]:
    """Yield the pooled samples of closed runs by the position of their class. One query, none without runs."""
    runs = [run for class_runs in classes for run in class_runs if only is None or run in only]
    if not runs:
        return
    rows = table.objects.filter(run__in=runs, n__gt=0).exclude(scenario=None)
    which = Case(
        *(When(run__in=class_runs, then=n) for n, class_runs in enumerate(classes)),
        output_field=IntegerField(),
    )
    grouped = rows.values_list(which, "measure__layer", "measure__name", "scenario__key").annotate(
        count=Sum("n"),
        total=Sum(F("n") * F("mean")),
        # The squares around 0; those around the mean are the rest (Chan, Golub and LeVeque 1983).
        squares=Sum(F("m2") + F("n") * F("mean") * F("mean")),
    )
    for n, layer, name, key, count, total, squares in grouped.order_by():
        mean = total / count
        apart = squares - count * mean * mean
        yield n, f"{layer}/{name}", key, Sample(count, mean, apart if apart > ROUNDING * squares else 0.0)


def _open(runs: Sequence[Run]) -> Iterator[tuple[int, str, str, Sample]]:
    """Yield the samples of open runs, whose rollups are not written yet."""
    series = {run.pk: scenario_series(run.pk) for run in runs if run.is_open}
    if not series:
        return
    ids = {scenario for samples in series.values() for scenario, _ in samples}
    keys = dict(Scenario.objects.filter(pk__in=ids).values_list("pk", "key"))
    for run, samples in series.items():
        for (scenario, (layer, name)), sample in samples.items():
            yield run, f"{layer}/{name}", keys[scenario], Sample(sample.n, sample.mean, sample.m2)


def by_change(compared: RunComparison) -> list[tuple[str, MeasureChange]]:
    """Return the comparable scenarios, the largest drop of the pass rate first, then the largest rise."""

    def order(item: tuple[str, MeasureChange]) -> tuple[bool, float, str]:
        effect = item[1].effect or 0.0
        return effect == 0, effect if effect < 0 else 1 - effect, item[0]

    return sorted(compared.scenarios.items(), key=order)


def comparison_json(
    before: Guidance, after: Guidance, chosen: RunsBySide | None, compared: RunComparison | None
) -> dict[str, Any]:
    """Return a comparison for REST and the command line; without runs of both, it has no measures."""
    document: dict[str, Any] = {"before": before.pk, "after": after.pk, "verdict": None, "setting": None}
    document |= {"interleaved": False, "runs_before": [], "runs_after": [], "scenarios": [], "measures": []}
    if chosen is None or compared is None:
        return document
    return document | {
        "verdict": compared.verdict,
        "setting": chosen.setting._asdict(),
        "interleaved": chosen.interleaved,
        "runs_before": [run.pk for run in chosen.before],
        "runs_after": [run.pk for run in chosen.after],
        "measures": [change_json(change) for change in (*compared.headline, *compared.others)],
        "scenarios": [
            {"scenario": key, "before": change.before, "after": change.after, "verdict": change.verdict.value}
            for key, change in by_change(compared)
        ],
    }
