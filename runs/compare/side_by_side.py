"""Compare runs side by side: every measure and scenario, in the given order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.compare.comparison import passes_of
from runs.models import Measure, Run, RunMeasure
from runs.results.measures import REPORTED

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
    keys = sorted({key for each in passed for key in each})
    return SideBySide(
        list(runs), measures_of(runs), [(key, [each.get(key) for each in passed]) for key in keys]
    )


def measures_of(runs: Sequence[Run]) -> list[tuple[Measure, list[Cell | None]]]:
    """Return every measure of the runs, with a cell per run. One query."""
    cells: dict[Measure, dict[int, Cell]] = {}
    rows = (
        RunMeasure.objects.filter(run__in=runs, scenario=None)
        .exclude(measure__layer=REPORTED)
        .select_related("measure")
        .order_by("measure")
    )
    for row in rows:
        cells.setdefault(row.measure, {})[row.run_id] = Cell(row.n, row.mean, row.m2)
    return [(measure, [own.get(run.pk) for run in runs]) for measure, own in cells.items()]
