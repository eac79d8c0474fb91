"""Draw a measure over runs."""

from __future__ import annotations

import math
from typing import Any

from runs.warehouse.trends import Mark, Point, Trend

Figure = dict[str, Any]


def trend_figure(trend: Trend) -> Figure:
    """Return a figure of points with intervals over runs, and version changes as lines.

    Colours are named by role (`role: new`); static/js/charts.js inserts the token values.
    """
    points, marks = trend.points, trend.marks
    x = list(range(len(points)))
    return {
        "data": [*_band(points, is_share=trend.is_share), _line(points, x, trend)],
        "layout": {
            "xaxis": {
                "tickmode": "array",
                "tickvals": _ticks(x),
                "ticktext": [f"{points[n].run}<br>{points[n].at:%d %b}" for n in _ticks(x)],
                "title": {"text": "Run"},
            },
            "yaxis": {
                "title": {"text": trend.label},
                "rangemode": "tozero",
                **({"tickformat": ".0%"} if trend.is_pass_rate else {}),
            },
            "shapes": [_line_at(mark.at) for mark in marks],
            "annotations": [_flag(mark) for mark in marks],
            "showlegend": False,
        },
    }


def _ticks(x: list[int]) -> list[int]:
    step = max(1, len(x) // 8)
    return x[::step]


def _line(points: list[Point], x: list[int], trend: Trend) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": trend.label,
        "x": x,
        "y": [point.mean for point in points],
        "role": "new",
        "customdata": [_hover_text(point) for point in points],
        "hovertemplate": f"%{{customdata}}<br>%{{y:{'.1%' if trend.is_pass_rate else '.3f'}}}<extra></extra>",
    }


def _hover_text(point: Point) -> str:
    """Return a point's hover text without angle brackets, because Plotly renders markup."""
    return _plain(f"run {point.run}, n = {point.n}, {point.tool_version} {point.guidance}").strip(" ,")


def _plain(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;")


def _band(points: list[Point], *, is_share: bool) -> list[Figure]:
    known = [(n, point) for n, point in enumerate(points) if point.half is not None]
    if len(known) < 2:
        return []
    top = 1.0 if is_share else math.inf
    upper = [(n, min(top, point.mean + (point.half or 0))) for n, point in known]
    lower = [(n, max(0.0, point.mean - (point.half or 0))) for n, point in known][::-1]
    outline = upper + lower
    return [
        {
            "type": "scatter",
            "mode": "none",
            "fill": "toself",
            "x": [n for n, _ in outline],
            "y": [value for _, value in outline],
            "hoverinfo": "skip",
            "role": "band",
        }
    ]


def _line_at(at: int) -> Figure:
    place = at - 0.5
    return {
        "type": "line",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"dash": "dot", "width": 1},
    }


def _flag(mark: Mark) -> Figure:
    """Return a change's letter; the hover text has the details."""
    return {
        "x": mark.at - 0.5,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "text": f"<b>{mark.flag}</b>",
        "hovertext": _plain(mark.words[:48]),
        "showarrow": False,
    }
