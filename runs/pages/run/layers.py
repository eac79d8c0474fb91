"""Summarise a run in three layers: interaction, gates, judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.db.models import QuerySet

from evalhub.web.numbers import counted
from evaluators.evaluator import LAYER as SCORING
from evaluators.scores.weighted_score import NAME as AGGREGATE
from runs.models import Run, RunMeasure
from runs.warehouse.layer_totals import GateKind, LayerTotals
from runs.warehouse.measures import CRITERION, INTERACTION, unit_of
from runs.warehouse.repeated_statements import Statement
from runs.warehouse.rollups import FALSE_DONE, so_far
from runs.warehouse.run_trials import RunTrials

LAYER = "interaction"


@dataclass(frozen=True)
class Mean:
    """A measure over a run, beside its baseline's."""

    name: str
    label: str
    unit: str
    mean: float
    change: float | None
    """Change from the baseline's mean over shared scenarios; None without any."""
    better: str

    @property
    def size(self) -> float:
        """Return the absolute change."""
        return abs(self.change or 0.0)

    @property
    def direction(self) -> str:
        """Return `better`, `worse` or `muted` for the change's sign."""
        if not self.change or self.better == "none":
            return "muted"
        return "better" if (self.change > 0) == (self.better == "higher") else "worse"


@dataclass(frozen=True)
class Layers:
    """Content of a run's three panels."""

    interaction: list[Mean]
    gates: list[GateKind]
    gate_trials: tuple[int, int]
    false_done: Mean | None
    """The share of trials that the agent completed and in which a gate failed; None if not measured."""
    evaluators: list[Mean]
    """Scores of an answer, the weighted mean first."""
    judge: Mean | None
    criteria: list[Mean]
    issues: list[Statement]
    highlights: list[Statement]
    judged: int
    totals: LayerTotals | None
    """None in digests of older releases."""

    @property
    def judge_caption(self) -> str:
        """Return the judge's caption: how many trials reached the threshold, or how many judgments exist."""
        judge = self.totals.judge if self.totals else None
        if judge is None or not judge.decided:
            return f"mean, {counted(self.judged, 'judgment')}"
        bar = "passed" if judge.threshold is None else f"≥ {judge.threshold:.2f}"
        return f"mean, {judge.reached} of {judge.decided} {bar}"

    @property
    def source(self) -> str:
        """Return the source of layer 1's commands; empty without commands."""
        totals = self.totals
        if totals is None or not (totals.structured or totals.text):
            return ""
        parts = [
            f"{name} ({n} of {counted(totals.trials, 'trial')})"
            for name, n in (("structured events", totals.structured), ("transcript text", totals.text))
            if n
        ]
        return f"Source: {', '.join(parts)}"

    @property
    def is_compared(self) -> bool:
        """Return whether any measure of layer 1 is compared with the baseline."""
        return any(each.change is not None for each in self.interaction)


def layers_of(run: Run, read: RunTrials) -> Layers:
    """Return a run's layers from its rollups and its trials' digest. One or two queries.

    An open run's means come from its finished trials. They aren't compared, because they cover other
    scenarios than the baseline's.
    """
    means, digest = _means_so_far(run) if run.is_open else _means(run, read), read.digest
    return Layers(
        interaction=[means[LAYER, name] for name in INTERACTION if (LAYER, name) in means],
        gates=digest.gates,
        gate_trials=digest.gate_trials,
        false_done=means.get(FALSE_DONE),
        evaluators=[means[key] for key in sorted(means, key=_aggregate_first) if key[0] == SCORING],
        judge=means.get(("judge", "judge")),
        criteria=[
            mean for (layer, name), mean in means.items() if layer == "judge" and name.startswith(CRITERION)
        ],
        issues=digest.issues,
        highlights=digest.highlights,
        judged=digest.judged,
        totals=digest.layers,
    )


def _aggregate_first(key: tuple[str, str]) -> tuple[bool, str]:
    return key[1] != AGGREGATE, key[1]


def _means(run: Run, read: RunTrials) -> dict[tuple[str, str], Mean]:
    rows = list(_measures(_both(run)))
    changes = _changes(run, read, {row[:3]: row[3:5] for row in rows})
    return {
        (layer, name): Mean(name, _label(name), unit, mean, changes.get((layer, name)), better)
        for owner, layer, name, _, mean, unit, better in rows
        if owner == run.pk
    }


def _both(run: Run) -> tuple[int, ...]:
    return (run.pk, run.baseline_id) if run.baseline_id else (run.pk,)


def _label(name: str) -> str:
    return INTERACTION.get(name) or name.removeprefix(CRITERION).replace("_", " ").capitalize()


def _changes(
    run: Run, read: RunTrials, means: Mapping[tuple[int, str, str], tuple[int, float]]
) -> dict[tuple[str, str], float]:
    """Return layer 1's changes from the baseline; one query if its scenarios differ."""
    own, before = (
        {name: means[key, LAYER, name] for name in INTERACTION if (key, LAYER, name) in means}
        for key in (run.pk, run.baseline_id or 0)
    )
    alike = read.before.keys() == read.outcomes.keys()
    if not alike or any(own[name][0] != before[name][0] for name in own.keys() & before.keys()):
        return _changes_of_shared(run)
    return {(LAYER, name): own[name][1] - before[name][1] for name in own.keys() & before.keys()}


def _changes_of_shared(run: Run) -> dict[tuple[str, str], float]:
    """Return layer 1's changes over the scenarios that both runs measured. One query."""
    means: defaultdict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for owner, name, scenario, mean in _of_scenarios(_both(run)):
        means[name, scenario][owner] = mean
    differences: defaultdict[str, list[float]] = defaultdict(list)
    for (name, _), each in means.items():
        if len(each) == 2:
            differences[name].append(each[run.pk] - each[run.baseline_id or 0])
    return {(LAYER, name): fmean(each) for name, each in differences.items()}


def _means_so_far(run: Run) -> dict[tuple[str, str], Mean]:
    means = {}
    for (layer, name), series in so_far(run.pk).items():
        unit, better = unit_of(layer, name)
        means[layer, name] = Mean(name, _label(name), unit, series.mean, None, better)
    return means


def _measures(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    found = RunMeasure.objects.filter(run__in=runs, scenario=None)
    return found.values_list(
        "run", "measure__layer", "measure__name", "n", "mean", "measure__unit", "measure__better"
    )


def _of_scenarios(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    interaction = {"measure__layer": LAYER, "measure__name__in": tuple(INTERACTION)}
    found = RunMeasure.objects.filter(run__in=runs, scenario__isnull=False, **interaction)
    return found.values_list("run", "measure__name", "scenario", "mean")
