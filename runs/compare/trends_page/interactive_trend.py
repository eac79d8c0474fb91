"""Describe the large chart to Plotly, which draws it once somebody points at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trend_series import TrendSeries, TrendValue
from runs.compare.trends_page.words import change_arrow, change_look, short_day, show_value

Figure = dict[str, Any]
ROLES = {"is-good": "good", "is-bad": "bad", "": "text-muted"}


def interactive_figure(
    series: TrendSeries, runs: Sequence[TrendRun], marks: Sequence[Mark], end: float
) -> Figure:
    """Return a measure's values with their intervals, level changes and changes of what ran; the y axis ends at `end`.

    Colours are named by role (`role: new`); static/js/charts.js inserts the token values, the texts of points and the
    days of the axis (`days`, one a run).
    """
    return {
        "data": [*_band(series.values), _line(series, runs)],
        "layout": {
            "xaxis": {"range": [-0.5, len(runs) - 0.5]},
            "yaxis": {
                "range": [0, end],
                "tickvals": [0, end / 2, end],
                "ticktext": [show_value(series, value) for value in (0.0, end / 2, end)],
            },
            "shapes": [*map(_line_at, marks), *_baseline(series), *_steps(series)],
            "annotations": _sizes(series),
        },
        "days": [short_day(run.at) for run in runs],
    }


def _line(series: TrendSeries, runs: Sequence[TrendRun]) -> Figure:
    points = [(runs[value.at], value.at in series.regressed) for value in series.values]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [value.at for value in series.values],
        "y": [value.value for value in series.values],
        "role": "new",
        "marker": {
            "symbol": [
                "triangle-down" if regressed else "circle-open" if run.is_experiment else "circle"
                for run, regressed in points
            ],
            "size": [11 if regressed else 7 for _, regressed in points],
            "color": ["bad" if regressed else "new" for _, regressed in points],
            "opacity": 1,
        },
    }


def _band(values: Sequence[TrendValue]) -> list[Figure]:
    known = [value for value in values if value.low is not None and value.high is not None]
    if len(known) < 2:
        return []
    outline = [(value.at, value.high) for value in known] + [(value.at, value.low) for value in known[::-1]]
    return [
        {
            "type": "scatter",
            "mode": "none",
            "fill": "toself",
            "x": [at for at, _ in outline],
            "y": [end for _, end in outline],
            "hoverinfo": "skip",
            "role": "band",
        }
    ]


def _line_at(mark: Mark) -> Figure:
    place = mark.at - 0.5
    ends = {"x0": place, "x1": place, "y0": 0, "y1": 1, "yref": "paper"}
    return {"type": "line", **ends, "line": {"dash": "dot", "width": 1}, "role": "control"}


def _baseline(series: TrendSeries) -> list[Figure]:
    if series.baseline is None:
        return []
    ends = {"x0": 0, "x1": 1, "xref": "paper", "y0": series.baseline, "y1": series.baseline}
    return [{"type": "line", **ends, "line": {"dash": "dot", "width": 1}, "role": "text"}]


def _steps(series: TrendSeries) -> list[Figure]:
    """Return a step from level to level at each change."""
    if not series.changes:
        return []
    ends = [0, *(change.at for change in series.changes), series.values[-1].at + 1]
    return [
        {
            "type": "path",
            "path": f"M{ends[n] - 0.5},{change.before}H{change.at - 0.5}V{change.after}H{ends[n + 2] - 0.5}",
            "line": {"width": 1.25},
            "role": ROLES[change_look(series, change)],
        }
        for n, change in enumerate(series.changes)
    ]


def _sizes(series: TrendSeries) -> list[Figure]:
    """Return the size of each change beside its step."""
    return [
        {
            "x": change.at - 0.5,
            "y": max(change.before, change.after),
            "text": f"<b>{change_arrow(series, change)}</b>",
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
            "role": ROLES[change_look(series, change)],
        }
        for change in series.changes
    ]
