"""The table of the trends page as CSV."""

from __future__ import annotations

from evalhub.web.csv_export import Cell, Table
from runs.warehouse.trends import Point, Trend

COLUMNS = (
    *(
        "run",
        "measure",
        "unit",
        "mean",
        "scenarios",
        "half_95",
        "guidance",
        "tool_version",
        "target",
        "model",
    ),
    *("at", "stale"),
)


def trend_table(slug: str, series: Trend | None) -> Table:
    """Return a suite's measure over its runs, newest first; `half_95` is half of the 95 % interval."""
    points = series.points[::-1] if series else []
    name, unit = (str(series.measure), series.measure.unit) if series and series.measure else ("", "")
    return Table(f"{slug or 'no-suite'}-trend", COLUMNS, (_row(point, name, unit) for point in points))


def _row(point: Point, measure: str, unit: str) -> tuple[Cell, ...]:
    return (
        *(point.run, measure, unit, point.mean, point.n, point.half, point.guidance, point.tool_version),
        *(point.target, point.model, point.at, point.is_stale),
    )
