"""Draw one measure over runs with Plotly, to zoom into and to read off values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trend_series import TrendSeries, TrendValue

Figure = dict[str, Any]
LABELLED = 8
"""Most runs named on the axis."""


def interactive_figure(series: TrendSeries, runs: Sequence[TrendRun], marks: Sequence[Mark]) -> Figure:
    """Return a figure of a measure's values with their intervals, and changes of what ran as lines.

    Colours are named by role (`role: new`); static/js/charts.js inserts the token values and follows a point's link.
    """
    places = range(0, len(runs), max(1, len(runs) // LABELLED))
    is_rate = series.unit == "rate"
    return {
        "data": [*_band(series.values), _line(series, runs, is_rate=is_rate)],
        "layout": {
            "xaxis": {
                "tickmode": "array",
                "tickvals": list(places),
                "ticktext": [f"{runs[at].pk}<br>{runs[at].at:%d %b}" for at in places],
                "title": {"text": "Run"},
            },
            "yaxis": {
                "title": {"text": _plain(series.label)},
                "rangemode": "tozero",
                **({"tickformat": ".0%"} if is_rate else {}),
            },
            "shapes": [_line_at(mark.at) for mark in marks],
            "annotations": [_flag(mark) for mark in marks],
            "showlegend": False,
        },
    }


def _line(series: TrendSeries, runs: Sequence[TrendRun], *, is_rate: bool) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": _plain(series.label),
        "x": [value.at for value in series.values],
        "y": [value.value for value in series.values],
        "role": "new",
        "text": [_hover_text(runs[value.at], value, series.of) for value in series.values],
        "links": [f"../runs/{runs[value.at].pk}/" for value in series.values],
        "hovertemplate": f"%{{text}}<br>%{{y:{'.1%' if is_rate else '.3f'}}}<extra></extra>",
    }


def _hover_text(run: TrendRun, value: TrendValue, of: str) -> str:
    parts = (f"run {run.pk}", f"n = {value.n} {of}", run.tool_version, run.guidance_name)
    return _plain(", ".join(filter(None, parts)))


def _plain(text: str) -> str:
    """Return a text without markup, which Plotly would render."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


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


def _line_at(at: int) -> Figure:
    place = at - 0.5
    line = {"dash": "dot", "width": 1}
    return {"type": "line", "x0": place, "x1": place, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _flag(mark: Mark) -> Figure:
    return {
        "x": mark.at - 0.5,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "text": f"<b>{_plain(mark.flags)}</b>",
        "hovertext": _plain(mark.words[:48]),
        "showarrow": False,
    }
