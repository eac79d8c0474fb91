"""Tool versions against guidance versions: pass rate, first-try success and cost of each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean

from django.db.models import Avg, Q

from evaluators.statistics.significance import t_interval
from runs.compare.guidance.guidance_runs import MOST_RUNS
from runs.models import Measure, Run, RunMeasure
from runs.models.run import NOT_CONFIRMING, RunState
from runs.results.counting import countings_of
from runs.results.rates import Rate
from scenarios.models import Guidance, Suite

FIRST_TRY = ("interaction", "first_try_success_rate")
COST = ("trial", "cost_usd")
MOST_READ = 1_000
"""The newest runs of a suite that are looked through; a cell counts as many as a side of a comparison does."""
MOST_COLUMNS = 8


@dataclass
class ScenarioMeans:
    """A measure over the scenarios of several runs."""

    highest: float
    """The largest value that the measure can have."""
    means: list[float] = field(default_factory=list)
    """Each scenario's mean of the runs' means."""

    @property
    def mean(self) -> float | None:
        """The mean of the scenarios' means; None if not measured."""
        return fmean(self.means) if self.means else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval over scenarios, within the measure's range; None below two, or if all are equal."""
        if len(set(self.means)) < 2:
            return None
        low, high = t_interval(self.means, 0.95)
        return max(0.0, low), min(self.highest, high)


@dataclass
class MatrixCell:
    """The newest finished runs of one tool version with one guidance."""

    runs: list[int] = field(default_factory=list)
    older: int = 0
    """Runs that are left out."""
    passed: int = 0
    judged: int = 0
    first_try: ScenarioMeans = field(default_factory=lambda: ScenarioMeans(1.0))
    cost: ScenarioMeans = field(default_factory=lambda: ScenarioMeans(inf))
    """US dollars a trial."""

    @property
    def rate(self) -> Rate:
        return Rate(self.passed, self.judged)


@dataclass(frozen=True)
class GuidanceMatrix:
    """Rows by tool version, newest first; columns by guidance, newest first."""

    guidance: Sequence[Guidance]
    rows: Sequence[tuple[str, Sequence[MatrixCell | None]]]
    targets: Sequence[str]
    counted: Sequence[str] = ()
    """How commands are counted in these runs, in words, where they differ."""


def guidance_matrix(suite: Suite, target: str = "") -> GuidanceMatrix:
    """Return a suite's matrix on one target, or on all. Five queries."""
    runs = Run.objects.filter(NOT_CONFIRMING, suite=suite, state=RunState.FINISHED).exclude(guidance=None)
    columns = ("target__name", "tool_version", "guidance", "pk", "passed", "failed", "counting")
    every = list(runs.order_by("-pk").values_list(*columns)[:MOST_READ])
    cells: dict[tuple[str, int], MatrixCell] = {}
    counted: set[str] = set()
    for name, tool, guidance, pk, passed, failed, counting in every:
        if target and name != target:
            continue
        cell = cells.setdefault((tool, guidance), MatrixCell())
        if len(cell.runs) == MOST_RUNS:
            cell.older += 1
            continue
        cell.runs.append(pk)
        counted.update(each.words for each in countings_of(counting))
        cell.passed += passed
        cell.judged += passed + failed
    _read_measures(suite, cells)
    used = list(dict.fromkeys(guidance for _, guidance in cells))[:MOST_COLUMNS]
    versions = {each.pk: each for each in suite.guidance.filter(pk__in=used).defer("files")}
    tools = dict.fromkeys(tool for tool, _ in cells)
    return GuidanceMatrix(
        [versions[pk] for pk in used],
        [(tool, [cells.get((tool, pk)) for pk in used]) for tool in tools],
        sorted({row[0] for row in every}),
        sorted(counted) if len(counted) > 1 else (),
    )


def _read_measures(suite: Suite, cells: dict[tuple[str, int], MatrixCell]) -> None:
    """Add first-try success and cost to the cells. Three queries.

    Scenarios and measures are named, so that an index finds the rows whatever other suites have.
    """
    wanted = [Q(layer=layer, name=name) for layer, name in (FIRST_TRY, COST)]
    layers = dict(Measure.objects.filter(wanted[0] | wanted[1]).values_list("pk", "layer"))
    scenarios = list(suite.scenarios.values_list("pk", flat=True))
    runs = [pk for cell in cells.values() for pk in cell.runs]
    rows = RunMeasure.objects.filter(run__in=runs, scenario__in=scenarios, measure__in=list(layers))
    groups = rows.values_list("run__tool_version", "run__guidance", "scenario", "measure")
    for tool, guidance, _, measure, mean in groups.annotate(mean_of_runs=Avg("mean")):
        cell = cells[tool, guidance]
        (cell.cost if layers[measure] == COST[0] else cell.first_try).means.append(mean)
