"""Runs beside each other: every measure and every scenario of them, in the order in which they are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.models import Measure, Run, RunMeasure
from runs.warehouse.comparison import passes


@dataclass(frozen=True)
class Cell:
    """A run's value: the mean of its scenarios' means, their number, and their squared differences from it."""

    n: int
    mean: float
    m2: float


@dataclass(frozen=True)
class SideBySide:
    """Rows over the same runs; None where a run did not measure or does not have it."""

    runs: list[Run]
    measures: list[tuple[Measure, list[Cell | None]]]
    scenarios: list[tuple[str, list[bool | None]]]


def side_by_side(runs: Sequence[Run]) -> SideBySide:
    """Return the runs' rollups and passed scenarios. Two queries, and one for each run."""
    passed = [passes(run.pk) for run in runs]
    keys = sorted({key for each in passed for key in each})
    return SideBySide(
        list(runs), measures_of(runs), [(key, [each.get(key) for each in passed]) for key in keys]
    )


def measures_of(runs: Sequence[Run]) -> list[tuple[Measure, list[Cell | None]]]:
    """Return every measure that any of the runs has, with a cell for each run. Two queries."""
    cells: dict[int, dict[int, Cell]] = {}
    rows = RunMeasure.objects.filter(run__in=runs, scenario=None)
    for run, measure, n, mean, m2 in rows.values_list("run", "measure", "n", "mean", "m2"):
        cells.setdefault(measure, {})[run] = Cell(n, mean, m2)
    measures = Measure.objects.filter(pk__in=cells)
    return [(measure, [cells[measure.pk].get(run.pk) for run in runs]) for measure in measures]
