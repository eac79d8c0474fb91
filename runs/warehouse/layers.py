"""A run in three layers: interaction, gates, judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from evalhub.web.prepared import prepared
from evaluators.scoring.base import LAYER as SCORING
from evaluators.scoring.layer import NAME as AGGREGATE
from runs.models import Run, RunMeasure
from runs.summaries.layer_totals import CRITERION, GateKind, LayerTotals
from runs.summaries.measures import unit_of
from runs.summaries.rollups import so_far
from runs.summaries.said import Statement
from runs.warehouse.run_trials import RunTrials

INTERACTION = {
    "first_try_success_rate": "First-try success",
    "error_rate": "Error rate",
    "retry_rate": "Retry rate",
    "help_seeking": "Help opened",
    "total_commands": "Commands",
    "iteration_ratio": "Iteration ratio",
    "completed": "Completed",
}
"""Measures of layer 1 in the order of the page, with their names for people."""


@dataclass(frozen=True)
class Mean:
    """A measure over a run, beside its baseline's."""

    name: str
    label: str
    unit: str
    mean: float
    before: float | None
    better: str

    @property
    def change(self) -> float | None:
        return None if self.before is None else self.mean - self.before

    @property
    def size(self) -> float:
        """The change without its sign."""
        return abs(self.change or 0.0)

    @property
    def direction(self) -> str:
        """`better`, `worse` or `muted`: what a change of this sign means."""
        if not self.change or self.better == "none":
            return "muted"
        return "better" if (self.change > 0) == (self.better == "higher") else "worse"


@dataclass(frozen=True)
class Layers:
    """Everything the three panels of a run show."""

    interaction: list[Mean]
    gates: list[GateKind]
    gate_trials: tuple[int, int]
    evaluators: list[Mean]
    """What scores an answer, the weighted mean of them first."""
    judge: Mean | None
    criteria: list[Mean]
    issues: list[Statement]
    highlights: list[Statement]
    judged: int
    totals: LayerTotals | None
    """None where the run was closed before its digest told them."""


def layers_of(run: Run, read: RunTrials) -> Layers:
    """Return a run's layers, from its rollups and what its trials come to. One query.

    An open run has no rollups yet: its means are those of the trials that have ended, held against nothing, for
    they are of other scenarios than the baseline's.
    """
    means, digest = _means_so_far(run) if run.is_open else _means(run), read.digest
    return Layers(
        interaction=[means["interaction", name] for name in INTERACTION if ("interaction", name) in means],
        gates=digest.gates,
        gate_trials=digest.gate_trials,
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


def _means(run: Run) -> dict[tuple[str, str], Mean]:
    runs = (run.pk, run.baseline_id) if run.baseline_id else (run.pk,)
    values = {(owner, *measure): mean for owner, mean, *measure in _measures(runs)}
    means = {}
    for (owner, layer, name, unit, better), mean in values.items():
        if owner == run.pk:
            before = values.get((run.baseline_id, layer, name, unit, better))
            means[layer, name] = Mean(name, _label(name), unit, mean, before, better)
    return means


def _means_so_far(run: Run) -> dict[tuple[str, str], Mean]:
    means = {}
    for (layer, name), series in so_far(run.pk).items():
        unit, better = unit_of(layer, name)
        means[layer, name] = Mean(name, _label(name), unit, series.mean, None, better)
    return means


def _label(name: str) -> str:
    return INTERACTION.get(name) or name.removeprefix(CRITERION).replace("_", " ").capitalize()


@prepared
def _measures(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    found = RunMeasure.objects.filter(run__in=runs, scenario=None)
    return found.values_list(
        "run", "mean", *(f"measure__{name}" for name in ("layer", "name", "unit", "better"))
    )
