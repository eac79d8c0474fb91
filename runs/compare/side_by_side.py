"""Compare runs side by side: every measure and scenario, in the given order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluators.statistics.measure_change import MeasureChange
from runs.compare.comparison import passes_of
from runs.compare.extensions import extensions_of, levels_of
from runs.compare.first_divergences import FirstDivergences, divergences_from
from runs.compare.measure_changes import RunComparison, compare_runs
from runs.compare.shown_changes import ComparedMeasure, ShownChange
from runs.models import Measure, Run, RunMeasure
from runs.results.measures import label_of


@dataclass(frozen=True)
class ComparedRun:
    """A run compared with the first one."""

    run: Run
    comparison: RunComparison
    divergences: FirstDivergences
    pooled: tuple[int, ...]
    """Keys of both runs if further trials count that were run for their comparison."""


def compared_with_first(runs: Sequence[Run], *, fresh: bool = True) -> list[ComparedRun]:
    """Compare each later run with the first one, by default with the further trials of both.

    Three to six queries, and two for each run with newly failing scenarios. Expects the runs' guidance to be loaded.
    """
    base, *others = runs
    extensions = extensions_of(runs) if fresh else []
    compared = compare_runs(base, others, extensions=extensions)
    asked = [run.pk for run in others if levels_of(base, run, extensions)]
    divergences = divergences_from(base, list(zip(others, compared, strict=True)), asked)
    pooled = {each.new.pk: each.base for each in extensions if each.looks}
    return [
        ComparedRun(run, comparison, apart, (base.pk, run.pk) if pooled.get(run.pk) == base.pk else ())
        for run, comparison, apart in zip(others, compared, divergences, strict=True)
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


def compared_measure(
    measure: Measure, cells: Sequence[Cell | None], change: MeasureChange | None
) -> ComparedMeasure:
    """Return a measure of two runs: what was compared, else their means."""
    means = [cell.mean if cell else None for cell in cells]
    before, after = (change.before, change.after) if change else means
    shown = ShownChange(change) if change else None
    return ComparedMeasure(label_of(measure), measure.unit, before, after, shown, str(measure))


def measures_with_cells(runs: Sequence[Run]) -> list[tuple[Measure, list[Cell | None]]]:
    """Return every measure of the runs, with a cell per run. One query."""
    cells: dict[Measure, dict[int, Cell]] = {}
    rows = RunMeasure.objects.filter(run__in=runs, scenario=None).select_related("measure")
    for row in rows.order_by("measure"):
        cells.setdefault(row.measure, {})[row.run_id] = Cell(row.n, row.mean, row.m2)
    return [(measure, [own.get(run.pk) for run in runs]) for measure, own in cells.items()]
