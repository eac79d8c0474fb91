"""Build the large chart with Plotly, whose script draws it once somebody points at it.

Colours are the style sheet's variables, which static/js/charts.js resolves; it adds what depends on the window's width.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from runs.compare.trend_runs import Mark, TrendRun
from runs.compare.trend_series import TrendSeries, TrendValue
from runs.compare.trends_page.trend import axis_end
from runs.compare.trends_page.words import change_arrow, change_look, short_day, show_value

CLEAR = "rgba(0,0,0,0)"
LOOKS = {"is-good": "var(--good)", "is-bad": "var(--bad)", "": "var(--text-muted)"}


def interactive_figure(
    series: TrendSeries, runs: Sequence[TrendRun], texts: Sequence[str], marks: Sequence[Mark]
) -> go.Figure:
    """Return a measure's values with their intervals, level changes and changes of what ran.

    `texts` are those of the points; `meta` has the days of the axis, one a run.
    """
    end = axis_end(series)
    axis = {"gridcolor": "var(--grid)", "zeroline": False, "ticks": "outside", "tickcolor": CLEAR}
    figure = go.Figure(
        layout=go.Layout(
            template=go.layout.Template(),
            meta=[short_day(run.at) for run in runs],
            font={"color": "var(--text-muted)"},
            paper_bgcolor=CLEAR,
            plot_bgcolor=CLEAR,
            xaxis={**axis, "range": [-0.5, len(runs) - 0.5], "showgrid": False, "tickangle": 0},
            yaxis={
                **axis,
                "range": [0, end],
                "tickvals": [0, end / 2, end],
                "ticktext": [show_value(series, value) for value in (0.0, end / 2, end)],
                "side": "right",
                "fixedrange": True,
            },
            hoverlabel={
                "align": "left",
                "bgcolor": "var(--surface)",
                "bordercolor": "var(--border)",
                "font": {"color": "var(--text)"},
            },
            hovermode="closest",
            hoverdistance=40,
            dragmode="zoom",
            showlegend=False,
        )
    )
    for mark in marks:
        figure.add_vline(mark.at - 0.5, line={"color": "var(--control)", "dash": "dot", "width": 1})
    if series.baseline is not None:
        figure.add_hline(series.baseline, line={"color": "var(--text)", "dash": "dot", "width": 1})
    _add_steps(figure, series)
    figure.add_traces([*_band(series.values), _line(series, runs, texts)])
    return figure


def _line(series: TrendSeries, runs: Sequence[TrendRun], texts: Sequence[str]) -> go.Scatter:
    points = [(runs[value.at], value.at in series.regressed) for value in series.values]
    return go.Scatter(
        mode="lines+markers",
        x=[value.at for value in series.values],
        y=[value.value for value in series.values],
        line={"color": "var(--new)", "width": 1.5},
        marker={
            "symbol": [
                "triangle-down" if regressed else "circle-open" if run.is_experiment else "circle"
                for run, regressed in points
            ],
            "size": [11 if regressed else 7 for _, regressed in points],
            "color": ["var(--bad)" if regressed else "var(--new)" for _, regressed in points],
            "opacity": 1,
        },
        text=[escape(text, quote=False).replace(", ", "<br>") for text in texts],
        hovertemplate="%{text}<extra></extra>",
    )


def _band(values: Sequence[TrendValue]) -> list[go.Scatter]:
    known = [value for value in values if value.low is not None and value.high is not None]
    if len(known) < 2:
        return []
    outline = [(value.at, value.high) for value in known] + [(value.at, value.low) for value in known[::-1]]
    x, y = zip(*outline, strict=True)
    return [go.Scatter(mode="none", fill="toself", x=x, y=y, hoverinfo="skip", fillcolor="var(--band)")]


def _add_steps(figure: go.Figure, series: TrendSeries) -> None:
    """Add a step from level to level at each change, with its size beside it."""
    ends = [0, *(change.at for change in series.changes), series.values[-1].at + 1]
    for n, change in enumerate(series.changes):
        color, x = LOOKS[change_look(series, change)], change.at - 0.5
        path = f"M{ends[n] - 0.5},{change.before}H{x}V{change.after}H{ends[n + 2] - 0.5}"
        figure.add_shape(type="path", path=path, line={"color": color, "width": 1.25})
        figure.add_annotation(
            x=x,
            y=max(change.before, change.after),
            text=f"<b>{change_arrow(series, change)}</b>",
            font={"color": color},
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
        )
