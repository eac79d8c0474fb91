"""The table of the trends page as CSV."""

from __future__ import annotations

from evalhub.web.csv_export import Cell, Table
from runs.pages.trends.trend_page import TrendPage
from runs.warehouse.trend_runs import TrendRun
from runs.warehouse.trend_series import Series, Value

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


def trend_table(slug: str, page: TrendPage | None) -> Table:
    """Return a suite's measures over its runs, newest first; `half_95` is half of the 95 % interval."""
    drawn = [chart.series for chart in page.charts] if page else []
    rows = (
        ((page.runs[each.at], series, each) for series in drawn for each in series.values[::-1])
        if page
        else ()
    )
    return Table(f"{slug or 'no-suite'}-trend", COLUMNS, (_row(*each) for each in rows))


def _row(run: TrendRun, series: Series, value: Value) -> tuple[Cell, ...]:
    return (
        *(run.pk, series.name, series.unit, value.value, value.n, value.half),
        *(run.guidance_name, run.tool_version, run.target, run.model, run.at, run.is_stale),
    )
