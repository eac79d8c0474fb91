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
from runs.results.counting import countings_of
from runs.results.rates import Rate
from scenarios.models import Guidance, Suite

FIRST_TRY = ("interaction", "first_try_success_rate")
COST = ("trial", "cost_usd")


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
    rates: list[float] = field(default_factory=list)
    first_try: ScenarioMeans = field(default_factory=lambda: ScenarioMeans(1.0))
    cost: ScenarioMeans = field(default_factory=lambda: ScenarioMeans(inf))
    """US dollars a trial."""

    @property
    def rate(self) -> Rate:
        return Rate(self.passed, self.judged, fmean(self.rates) if self.rates else None)


@dataclass(frozen=True)
class GuidanceMatrix:
    """Rows by tool version, newest first; columns by guidance."""

    guidance: Sequence[Guidance]
    rows: Sequence[tuple[str, Sequence[MatrixCell | None]]]
    counted: Sequence[str] = ()
    """How commands are counted in these runs, in words, where they differ."""

    def cell(self, tool_version: str, guidance: Guidance) -> MatrixCell | None:
        """Return the cell of a pair; None if it didn't run."""
        row = dict(self.rows).get(tool_version)
        return row[list(self.guidance).index(guidance)] if row else None


def guidance_matrix(suite: Suite, versions: Sequence[Guidance], runs: Sequence[Run]) -> GuidanceMatrix:
    """Return the matrix of versions over these runs of a suite, which are newest first. Three queries."""
    shown = {each.pk for each in versions}
    cells: dict[tuple[str, int], MatrixCell] = {}
    counted: set[str] = set()
    for run in runs:
        if run.guidance_id not in shown:
            continue
        cell = cells.setdefault((run.tool_version, run.guidance_id), MatrixCell())
        if len(cell.runs) == MOST_RUNS:
            cell.older += 1
            continue
        cell.runs.append(run.pk)
        counted.update(each.words for each in countings_of(run.counting))
        cell.passed += run.passed
        cell.judged += run.passed + run.failed
        cell.rates += [] if run.pass_rate is None else [run.pass_rate]
    _read_measures(suite, cells)
    tools = dict.fromkeys(tool for tool, _ in cells)
    return GuidanceMatrix(
        versions,
        [(tool, [cells.get((tool, each.pk)) for each in versions]) for tool in tools],
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
