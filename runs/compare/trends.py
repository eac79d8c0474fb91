"""Read a suite's measure over its runs, as REST returns it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from pydantic import Field

from evalhub.lib.value import Moment, Value
from evaluators.statistics.descriptive import Z_95
from runs.compare.trend_series import moments_by_measure
from runs.models import Measure, Run, RunMeasure
from runs.models.run import NOT_CONFIRMING, OPEN
from scenarios.models import Suite

MOST_RUNS = 100
RUNS_FOR_MEASURES = 20
"""Newest runs searched for choices."""


@dataclass(frozen=True)
class Point(Value):
    """A run's value of a measure: the mean of its scenarios' means."""

    run: int
    at: Moment
    mean: float
    n: int
    half: float | None
    """Half of the 95 % interval over scenarios; null with one scenario."""
    tool_version: str
    guidance: str
    target: str
    model: str
    is_stale: Annotated[bool, Field(exclude=True)] = False
    """Whether the suite's files were outdated for the tool."""


@dataclass(frozen=True)
class Trend:
    """A measure over runs, oldest first."""

    measure: Measure | None
    points: list[Point]
    measures: list[Measure]


def measures_of_runs(runs: Iterable[int]) -> list[Measure]:
    """Return the measures of some runs. One query."""
    measured = RunMeasure.objects.filter(run__in=tuple(runs)[:RUNS_FOR_MEASURES], scenario=None)
    return list(Measure.objects.filter(pk__in=measured.values("measure")))


_OF_A_RUN = (
    "pk",
    "at",
    "tool_version",
    "guidance__name",
    "guidance__number",
    "target__name",
    "model",
    "fingerprint__staleness__stale",
)


def trend(suite: Suite, name: str, *, target: str = "") -> Trend:
    """Return a measure (`layer/name`) of a suite over its last runs; the pass rate if it is unknown.

    Three queries. Runs are selected first, by index, so the cost doesn't grow with the history.
    """
    runs = {row[0]: row for row in _closed_runs(suite.pk, target)}
    measures = measures_of_runs(runs)
    by_name = {str(measure): measure for measure in measures}
    measure = by_name.get(name) or by_name.get("trial/pass") or (measures[0] if measures else None)
    if measure is None:
        return Trend(None, [], [])
    values = sorted(moments_by_measure([measure], runs.keys())[measure.pk].items())
    return Trend(measure, [_point(runs[run], mean, n, m2) for run, (n, mean, m2) in values], measures)


def _closed_runs(suite: int, target: str) -> QuerySet[Run, Any]:
    closed = Run.objects.filter(NOT_CONFIRMING, suite=suite).exclude(state__in=OPEN).order_by("-pk")
    if target:
        closed = closed.filter(target__name=target)
    return closed.annotate(at=Coalesce("finished", "created")).values_list(*_OF_A_RUN)[:MOST_RUNS]


def _point(run: Sequence[Any], mean: float, n: int, m2: float) -> Point:
    pk, at, tool_version, guidance, number, target, model, stale = run
    half = Z_95 * math.sqrt(m2 / (n - 1) / n) if n > 1 else None
    named = guidance or (f"guidance {number}" if number else "")
    return Point(pk, at, mean, n, half, tool_version, named, target, model, bool(stale))
