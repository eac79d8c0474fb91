"""Tool versions against guidance versions: pass rate, first-try success and cost of each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluators.significance import t_interval
from runs.models import Run, RunMeasure
from runs.models.run import NOT_CONFIRMING, RunState
from runs.warehouse.rates import Rate
from scenarios.models import Guidance, Suite

FIRST_TRY = ("interaction", "first_try_success_rate")
MOST_RUNS = 1_000
MOST_COLUMNS = 8


@dataclass
class MatrixCell:
    """The finished runs of one tool version with one guidance."""

    runs: list[int] = field(default_factory=list)
    passed: int = 0
    judged: int = 0
    trials: int = 0
    costs: list[float] = field(default_factory=list)
    first_tries: dict[int, list[float]] = field(default_factory=dict)
    """Means by scenario."""

    @property
    def rate(self) -> Rate:
        return Rate(self.passed, self.judged)

    @property
    def cost(self) -> float | None:
        """US dollars a trial."""
        return sum(self.costs) / self.trials if self.costs and self.trials else None

    @property
    def first_try(self) -> float | None:
        """The mean of the scenarios' means; None if not measured."""
        means = self._means
        return sum(means) / len(means) if means else None

    @property
    def first_try_range(self) -> tuple[float, float] | None:
        """Student's 95 % interval over scenarios, within 0 and 1; None below two."""
        if len(self._means) < 2:
            return None
        low, high = t_interval(self._means, 0.95)
        return max(0.0, low), min(1.0, high)

    @property
    def _means(self) -> list[float]:
        return [sum(each) / len(each) for each in self.first_tries.values()]


@dataclass(frozen=True)
class GuidanceMatrix:
    """Rows by tool version, newest first; columns by guidance, newest first."""

    guidance: Sequence[Guidance]
    rows: Sequence[tuple[str, Sequence[MatrixCell | None]]]
    targets: Sequence[str]


def guidance_matrix(suite: Suite, target: str = "") -> GuidanceMatrix:
    """Return a suite's matrix on one target, or on all. Two queries."""
    runs = Run.objects.filter(NOT_CONFIRMING, suite=suite, state=RunState.FINISHED).exclude(guidance=None)
    columns = ("target__name", "tool_version", "guidance", "pk", "passed", "failed", "errors", "cost_usd")
    every = list(runs.order_by("-pk").values_list(*columns)[:MOST_RUNS])
    cells: dict[tuple[str, int], MatrixCell] = {}
    by_run: dict[int, MatrixCell] = {}
    for name, tool, guidance, pk, passed, failed, errors, cost in every:
        if target and name != target:
            continue
        cell = by_run[pk] = cells.setdefault((tool, guidance), MatrixCell())
        cell.runs.append(pk)
        cell.passed += passed
        cell.judged += passed + failed
        if cost is not None:
            cell.costs.append(cost)
            cell.trials += passed + failed + errors
    _read_first_tries(by_run)
    used = list(dict.fromkeys(guidance for _, guidance in cells))[:MOST_COLUMNS]
    versions = {each.pk: each for each in suite.guidance.filter(pk__in=used).defer("files")}
    tools = dict.fromkeys(tool for tool, _ in cells)
    return GuidanceMatrix(
        [versions[pk] for pk in used],
        [(tool, [cells.get((tool, pk)) for pk in used]) for tool in tools],
        sorted({row[0] for row in every}),
    )


def _read_first_tries(cells: dict[int, MatrixCell]) -> None:
    rows = RunMeasure.objects.filter(
        run__in=cells, measure__layer=FIRST_TRY[0], measure__name=FIRST_TRY[1]
    ).exclude(scenario=None)
    for run, scenario, mean in rows.values_list("run", "scenario", "mean"):
        cells[run].first_tries.setdefault(scenario, []).append(mean)
