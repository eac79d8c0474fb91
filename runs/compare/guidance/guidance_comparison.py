"""Compare two versions of guidance, measure by measure, over the runs that had each."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Case, F, IntegerField, Sum, When

from evalhub.teams.models import Project
from evaluators.statistics.comparability import Reasons, parts_of
from evaluators.statistics.error_shares import ONE_LOOK
from evaluators.statistics.measure_change import MeasureChange, Sample, pool_samples
from runs.compare.guidance.guidance_runs import RunsBySide
from runs.compare.looks import levels_asked
from runs.compare.measure_changes import (
    PASS,
    RunComparison,
    compare_samples,
    rule_of,
    without_verdict,
)
from runs.compare.stored_changes import change_json
from runs.models import GuidanceComparison, LaterMeasure, Run, RunMeasure
from runs.results.comparability import parts_changed_since
from runs.results.measures import unit_of
from runs.results.rollups import scenario_series
from scenarios.models import Guidance, Scenario

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


def compare_chosen(chosen: RunsBySide) -> RunComparison:
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
