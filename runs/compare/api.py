"""REST operations for trends and for comparisons of several runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from ninja import Query, Router, Schema
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.lib.value import Moment, Value
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers
from evaluators.statistics.descriptive import Z_95
from evaluators.statistics.measure_change import ChangeVerdict, MeasureChange
from runs.compare.lost_scenarios import change_json
from runs.compare.side_by_side import (
    MOST_COMPARED,
    ComparedRun,
    compared_with_first,
    divergences_json,
    side_by_side,
)
from runs.compare.trend_series import moments_by_measure
from runs.models import Measure, Run, RunMeasure
from runs.models.run import NOT_CONFIRMING, OPEN
from runs.results.lookup import find_runs
from runs.results.run_rows import listed_runs
from runs.results.schemas import RunRowOut
from scenarios.api.suites import find_suite
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


router = Router()


class MeasureOut(Schema):
    layer: str
    name: str
    unit: str
    better: str
    """higher, lower or none."""


class TrendOut(Schema):
    measure: MeasureOut | None
    points: list[Point]
    """Oldest first."""


class CellOut(Schema):
    n: int
    mean: float
    m2: float


class ComparedMeasureOut(Schema):
    measure: MeasureOut
    values: list[CellOut | None]
    """One for each run; null if not measured."""


class ComparedScenarioOut(Schema):
    scenario: str
    passed: list[bool | None]
    """Whether every trial passed, errors excluded; null if the run has no such trial."""


class SharedDivergenceOut(Schema):
    command: str
    """Subcommand and flags; `no …` for a command that the failing trial lacks."""
    scenarios: int


class ScenarioDivergenceOut(Schema):
    scenario: str
    base_trial: int
    """A passed trial of the first run."""
    new_trial: int
    """The failed trial that parts ways with it last."""
    number: int
    """Of the aligned pair of commands, from 1."""
    base_command: str | None
    new_command: str | None


class FirstDivergencesOut(Schema):
    """The first different commands of the newly failing scenarios."""

    newly_failing: int
    most_common: SharedDivergenceOut | None
    scenarios: list[ScenarioDivergenceOut]


class RunComparisonOut(Schema):
    """A run compared with the first one."""

    run: int
    verdict: ChangeVerdict | None
    verdict_reason: str | None
    """errors: a third or more of the trials of one of the runs hit errors, so nothing is compared; else null."""
    scenarios: int
    """Scenarios that both runs have results of."""
    comparable: int
    """Scenarios with comparable outcomes."""
    not_comparable: dict[str, list[str]]
    """Scenarios that aren't comparable, with what changed."""
    measures: list[MeasureChange]
    ends: list[str]
    """The sources of exit codes that layer 1 is compared by, those that both runs have: recorded, reported, estimated."""
    pooled: list[int]
    """Runs with further trials of either run, which count here."""
    first_divergences: FirstDivergencesOut
    """Where failing trials part ways with passing ones of the first run."""


class ComparisonOut(Schema):
    runs: list[RunRowOut]
    measures: list[ComparedMeasureOut]
    scenarios: list[ComparedScenarioOut]
    comparisons: list[RunComparisonOut]
    """Each later run compared with the first."""


class TrendQuery(BaseModel):
    """The suite, measure and target of a trend."""

    suite: Text
    measure: Text = "trial/pass"
    target: Text = ""


class CompareQuery(BaseModel):
    """Comma-separated run numbers, in the order of the columns."""

    runs: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,17}(,[1-9][0-9]{0,17})*$", examples=["3,5"])]
    fresh: bool = True
    """Whether to pool the further trials that were run for a comparison."""


@router.get("/trends", auth=Bearer(), response=declare_answers(TrendOut), tags=["trends"])
def get_trend(request: ApiRequest, query: Query[TrendQuery]) -> dict[str, Any]:
    """Get a measure of a suite over its latest runs; falls back to the pass rate if the measure is unknown."""
    series = trend(find_suite(request, query.suite), query.measure, target=query.target)
    return {"measure": series.measure, "points": series.points}


@router.get("/compare", auth=Bearer(), response=declare_answers(ComparisonOut), tags=["compare"])
def compare_runs(request: ApiRequest, query: Query[CompareQuery]) -> dict[str, Any]:
    """Compare up to ten runs with the first: every measure, which scenarios passed, and where failing trials part ways."""
    keys = list(dict.fromkeys(map(int, query.runs.split(","))))
    if len(keys) > MOST_COMPARED:
        raise ApiError(422, f"You can compare at most {MOST_COMPARED} runs at once.", id="compare/too-many")
    comparison = side_by_side(find_runs(request, keys))
    return {
        "runs": listed_runs([run.pk for run in comparison.runs]),
        "measures": [{"measure": measure, "values": cells} for measure, cells in comparison.measures],
        "scenarios": [{"scenario": key, "passed": passed} for key, passed in comparison.scenarios],
        "comparisons": [
            _compared_json(compared_run)
            for compared_run in compared_with_first(comparison.runs, fresh=query.fresh)
        ],
    }


def _compared_json(compared_run: ComparedRun) -> dict[str, Any]:
    compared = compared_run.comparison
    return {
        "run": compared_run.run.pk,
        "verdict": compared.verdict,
        "verdict_reason": compared.verdict_reason,
        "scenarios": compared.common,
        "comparable": compared.comparable,
        "not_comparable": {key: list(why) for key, why in compared.not_comparable.items()},
        "measures": [change_json(change) for change in (*compared.headline, *compared.others)],
        "ends": list(compared.exit_sources),
        "pooled": list(compared_run.pooled),
        "first_divergences": divergences_json(compared_run.divergences),
    }
