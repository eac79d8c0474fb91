"""A measure of a suite over its runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from evaluators.statistics import Z_95
from runs.models import Measure, RunMeasure
from runs.warehouse.layers import CRITERION, INTERACTION
from scenarios.models import Suite

MOST_RUNS = 200


@dataclass(frozen=True)
class Point:
    """A run's value of a measure: the mean of its scenarios' means."""

    run: int
    at: datetime
    mean: float
    n: int
    half: float | None
    """Half of the 95 % interval over scenarios; None with one scenario."""
    tool_version: str
    guidance: str
    target: str
    model: str


@dataclass(frozen=True)
class Trend:
    """A measure over runs, oldest first."""

    measure: Measure | None
    points: list[Point]
    measures: list[Measure]

    @property
    def label(self) -> str:
        """What is drawn, for people."""
        return label_of(self.measure) if self.measure else ""

    @property
    def is_share(self) -> bool:
        """Whether values lie between 0 and 1."""
        return self.measure is not None and self.measure.unit in ("rate", "score")

    @property
    def marks(self) -> list[tuple[int, str]]:
        """Position and words of every change of tool or guidance, one for each position."""
        found = []
        for index, (before, after) in enumerate(zip(self.points, self.points[1:], strict=False), 1):
            words = [
                getattr(after, name) or f"no {name.split('_')[0]}"
                for name in ("tool_version", "guidance")
                if getattr(before, name) != getattr(after, name)
            ]
            if words:
                found.append((index, ", ".join(words)))
        return found


def label_of(measure: Measure) -> str:
    """Return a measure's name for people."""
    if (measure.layer, measure.name) == ("trial", "pass"):
        return "Pass rate"
    plain = measure.name.removeprefix(CRITERION).replace("_", " ").capitalize()
    return INTERACTION.get(measure.name, plain) if measure.layer == "interaction" else plain


def measures_of(suite: Suite) -> list[Measure]:
    """Return what was measured in a suite's runs. One query."""
    measured = RunMeasure.objects.filter(run__suite=suite, scenario=None).values("measure")
    return list(Measure.objects.filter(pk__in=measured))


def trend(suite: Suite, name: str, *, target: str = "") -> Trend:
    """Return a measure (`layer/name`) of a suite over its last runs; the pass rate where it is not known. Two queries."""
    measures = measures_of(suite)
    by_name = {str(measure): measure for measure in measures}
    measure = by_name.get(name) or by_name.get("trial/pass") or (measures[0] if measures else None)
    if measure is None:
        return Trend(None, [], [])
    found = RunMeasure.objects.filter(measure=measure, scenario=None, run__suite=suite)
    if target:
        found = found.filter(run__target__name=target)
    rows = found.select_related("run__guidance", "run__target").order_by("-run_id")[:MOST_RUNS]
    return Trend(measure, [_point(row) for row in rows][::-1], measures)


def _point(row: RunMeasure) -> Point:
    run = row.run
    half = Z_95 * math.sqrt(row.m2 / (row.n - 1) / row.n) if row.n > 1 else None
    guidance = str(run.guidance) if run.guidance else ""
    at = run.finished or run.created
    return Point(run.pk, at, row.mean, row.n, half, run.tool_version, guidance, run.target.name, run.model)
