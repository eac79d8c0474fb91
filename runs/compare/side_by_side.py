"""Compare runs side by side: every measure and scenario, in the given order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.compare.comparison import passes_of
from runs.compare.first_divergences import FirstDivergences, divergences_from
from runs.compare.fresh_trials import fresh_runs, pool_of
from runs.compare.measure_changes import RunComparison, compare_pools
from runs.models import Measure, Run, RunMeasure


@dataclass(frozen=True)
class ComparedRun:
    """A run compared with the first one."""

    run: Run
    comparison: RunComparison
    divergences: FirstDivergences
    pooled: tuple[int, ...]
    """Keys of the runs with further trials of either that count."""


def compared_with_first(runs: Sequence[Run], *, fresh: bool = True) -> list[ComparedRun]:
    """Compare each later run with the first one, by default with the further trials of both.

    Three to six queries, and two for each run with newly failing scenarios. Expects the runs' guidance to be loaded.
    """
    fresh_trials = fresh_runs(runs) if fresh else []
    base, *others = [pool_of(run, fresh_trials) for run in runs]
    compared = compare_pools(base, others)
    divergences = divergences_from(base, list(zip(others, compared, strict=True)))
    return [
        ComparedRun(pool.run, comparison, apart, (*base.also, *pool.also))
        for pool, comparison, apart in zip(others, compared, divergences, strict=True)
    ]


MOST_COMPARED = 10
"""The most runs of one comparison."""


@dataclass(frozen=True)
class Cell:
    """A run's value: mean of scenario means, their number and sum of squared differences."""

    n: int
    mean: float
    m2: float


@dataclass(frozen=True)
class SideBySide:
    """Rows over the same runs; None where a run has no value."""

    runs: list[Run]
    measures: list[tuple[Measure, list[Cell | None]]]
    scenarios: list[tuple[str, list[bool | None]]]


def side_by_side(runs: Sequence[Run]) -> SideBySide:
    """Return the runs' rollups and passed scenarios. Two queries."""
    passed = list(passes_of([run.pk for run in runs]).values())
    keys = sorted({key for by_key in passed for key in by_key})
    return SideBySide(
        list(runs), measures_with_cells(runs), [(key, [each.get(key) for each in passed]) for key in keys]
    )


def measures_with_cells(runs: Sequence[Run]) -> list[tuple[Measure, list[Cell | None]]]:
    """Return every measure of the runs, with a cell per run. One query."""
    cells: dict[Measure, dict[int, Cell]] = {}
    rows = RunMeasure.objects.filter(run__in=runs, scenario=None).select_related("measure")
    for row in rows.order_by("measure"):
        cells.setdefault(row.measure, {})[row.run_id] = Cell(row.n, row.mean, row.m2)
    return [(measure, [own.get(run.pk) for run in runs]) for measure, own in cells.items()]
