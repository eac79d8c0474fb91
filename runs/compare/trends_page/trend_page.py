"""Read a suite's trends for their page and table, with the large chart and a sentence on the last change.

Plotly draws the chart once somebody points at it. Colours are the style sheet's variables, which
static/js/charts.js resolves; it adds what depends on the window's width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode

import plotly.graph_objects as go
from django.http import QueryDict
from django.utils.safestring import SafeString

from evaluators.statistics.change_points import FEWEST_RUNS
from evaluators.statistics.measure_change import DECIDED
from runs.compare.annotations import trend_annotations
from runs.compare.trend_series import (
    OVERVIEW,
    Mark,
    TrendChoices,
    TrendFilters,
    TrendRun,
    TrendSeries,
    TrendValue,
    choices_of,
    choose_series,
    find_version_marks,
    is_of_line,
    may_have_change_points,
    measures_of,
    newest_runs_of_suite,
    read_trend_filters,
    series_of,
    subcommand_series,
)
from runs.compare.trends_page.trend import (
    axis_end,
    change_arrow,
    change_look,
    change_sentence,
    describe_series,
    draw_small_trend,
    draw_strip,
    draw_trend,
    large_plot,
    point_texts,
    run_words,
    short_day,
    show_value,
)
from runs.models import Annotation, Change, Measure
from runs.results.counting import NOT_COMPARED, countings_of
from runs.results.measures import label_of
from scenarios.models import Suite

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


class LastChange(NamedTuple):
    """The newest change of a measure."""

    run: TrendRun
    """The first run after it."""
    words: str
    """What changed how and with what; the day and the run follow."""
    until: TrendRun | None
    """The first later run without the verdict; None while it lasts, or for a change point."""

    @property
    def day(self) -> str:
        return short_day(self.run.at)


class _Change(NamedTuple):
    at: int
    """Position of the first run after the change."""
    series: TrendSeries
    before: float
    after: float
    until: TrendRun | None = None


def last_change(
    suite: str,
    series: Sequence[TrendSeries],
    measures: Sequence[Measure],
    runs: Sequence[TrendRun],
    line: Sequence[TrendRun],
    marks: Sequence[Mark],
) -> LastChange | None:
    """Return the newest change of these measures, by stored verdicts and change points; None if there was none.

    `line` has the runs whose verdicts count. One query.
    """
    by_key = {measure.pk: trend for measure in measures for trend in series if trend.name == str(measure)}
    # Of changes at one run, the first measure's; a verdict before a change point.
    changes = [*_verdicts(by_key, runs, line), *_change_points(series)]
    if not changes:
        return None
    newest = max(changes, key=lambda each: each.at)
    words = {mark.at: mark.words for mark in marks}.get(newest.at, "")
    return LastChange(runs[newest.at], _sentence(suite, newest, words), newest.until)


def _change_points(series: Sequence[TrendSeries]) -> list[_Change]:
    return [
        _Change(change.at, trend, change.before, change.after) for trend in series for change in trend.changes
    ]


def _verdicts(
    by_key: Mapping[int, TrendSeries], runs: Sequence[TrendRun], line: Sequence[TrendRun]
) -> list[_Change]:
    """Return the first run of each measure's newest streak of one verdict."""
    rows = Change.objects.filter(
        run__in=[run.pk for run in line], measure__in=by_key, scenario=None, verdict__in=DECIDED
    )
    places = {run.pk: at for at, run in enumerate(runs)}
    decided = {
        (measure, run): (verdict, before, after)
        for measure, run, verdict, before, after in rows.values_list(
            "measure_id", "run_id", "verdict", "before", "after"
        )
    }
    changes = []
    for key, series in by_key.items():
        verdicts = [(run, decided.get((key, run.pk))) for run in line]
        newest: _Change | None = None
        previous = ""
        for run, row in verdicts:
            verdict = row[0] if row else ""
            if row and verdict != previous and row[1] is not None and row[2] is not None:
                newest = _Change(places[run.pk], series, row[1], row[2])
            elif newest and previous and not verdict:
                newest = newest._replace(until=run)
            previous = verdict
        changes += [newest] if newest else []
    return changes


def _sentence(suite: str, change: _Change, marked: str) -> str:
    series = change.series
    moved = "rose" if change.after > change.before else "fell"
    if series.is_share:
        size = f"{abs(change.after - change.before) * 100:.0f} points"
    else:
        size = f"from {show_value(series, change.before)} to {show_value(series, change.after)}"
    # A tool's version mostly names the tool.
    reason = f" with {marked.removeprefix('tool ')}" if marked else ""
    return f"{series.label} of {suite} {moved} {size}{reason}"


OWN_COLUMNS = 4
"""Measures with a column of their own in the table."""
MOST_ANNOTATIONS = 100
"""Newest annotations shown."""


class Chart(NamedTuple):
    """A series with its drawing and change points in words."""

    series: TrendSeries
    newest: str
    drawing: SafeString
    changes: list[tuple[TrendRun, str, str]]
    """First run of each change, what changed, and its class."""


class LargeChart(NamedTuple):
    """The chosen measure, to read points off and to zoom into."""

    chart: Chart
    strip: SafeString
    summary: str
    texts: list[str]
    """Of each point, oldest first."""


class Row(NamedTuple):
    """A run of the table."""

    run: TrendRun
    cells: list[tuple[str, TrendValue | None]]
    """Each measure's value as text and as such."""


@dataclass(frozen=True)
class TrendPage:
    """A suite's measures over its newest runs."""

    filters: TrendFilters
    measure: str
    """The chosen measure; empty for the overview."""
    choices: TrendChoices
    measures: list[tuple[str, str]]
    runs: list[TrendRun]
    """Oldest first."""
    last: LastChange | None
    large: LargeChart | None
    """None where nothing was measured."""
    others: list[Chart]
    subcommands: list[Chart]
    annotations: list[Annotation]
    without_changes: str
    """Why change points are not searched; empty where they are."""
    baseline: int | None
    compared_by: str
    """By which exit codes tool use is counted, as a sentence, where not every run has recorded ones."""

    @property
    def shown(self) -> list[TrendSeries]:
        """Return the measures of the CSV: the chosen one, else all of the overview."""
        if self.large is None:
            return []
        large_series = self.large.chart.series
        return [large_series] if self.measure else [large_series, *(chart.series for chart in self.others)]

    @property
    def columns(self) -> list[TrendSeries]:
        """Return the measures of the table."""
        return self.shown[:OWN_COLUMNS]

    @property
    def rows(self) -> list[Row]:
        """Return the table's rows, newest first."""
        places = [{each.at: each for each in series.values} for series in self.columns]
        rows = []
        for at, run in reversed(list(enumerate(self.runs))):
            values = [each.get(at) for each in places]
            cells = [
                (show_value(series, value.value) if value else "–", value)
                for series, value in zip(self.columns, values, strict=True)
            ]
            rows.append(Row(run, cells))
        return rows

    def figure(self) -> str:
        """Return the large chart for Plotly, as JSON; empty where nothing was measured."""
        # Imported only where it is asked for, because it takes 0.3 s.
        pass

        if self.large is None:
            return ""
        series, texts = self.large.chart.series, self.large.texts
        return str(interactive_figure(series, self.runs, texts, find_version_marks(self.runs)).to_json())

    def address_of(self, series: TrendSeries, suite: Suite) -> str:
        """Return the page's query string with another measure as the large chart."""
        filters = {name: getattr(self.filters, name) for name in ("target", "model")}
        filters |= dict(self.filters.in_force)
        return "?" + urlencode({"suite": suite.slug, "measure": series.name, **filters})


def trend_page(suite: Suite, query: QueryDict) -> TrendPage:
    """Return a suite's trends. Five to eight queries.

    They read the newest runs, once more if filtered, their measures, their rollups, their verdicts, the scenarios of
    several versions of the suite, subcommands, and annotations.
    """
    newest = newest_runs_of_suite(suite.pk, TrendFilters())
    filters = read_trend_filters(query, newest)
    runs = newest_runs_of_suite(suite.pk, filters) if filters.in_force else newest
    measures = measures_of(runs) if runs else []
    name = query.get("measure", "")
    name = name if name in {str(each) for each in measures} else ""
    picked = _pick(measures, name)
    line = [run for run in runs if is_of_line(run, filters)]
    baseline = line[-1].baseline if line else None
    countings = {each for run in runs for each in countings_of(run.configuration.counting)}
    series = series_of(picked, runs, filters, baseline) if picked else []
    series = [each for each in series if each.values]
    notes = list(trend_annotations(suite.project, suite)[:MOST_ANNOTATIONS]) if series else []
    changed = series[:1] if name else series
    return TrendPage(
        filters,
        name,
        choices_of(newest),
        [
            (str(measure), f"{measure.layer.capitalize()}: {label_of(measure)}")
            for measure in sorted(measures, key=_order)
        ],
        runs,
        last_change(suite.name, changed, picked, runs, line, find_version_marks(runs)) if series else None,
        _large(series[0], runs, notes) if series else None,
        [_small(each, runs) for each in series[1:]],
        [_small(each, runs) for each in (subcommand_series(runs) if series else [])],
        notes,
        "" if may_have_change_points(runs, filters) else _without_changes(line),
        baseline,
        NOT_COMPARED if len(countings) > 1 else "",
    )


def _pick(measures: Sequence[Measure], name: str) -> list[Measure]:
    """Return the chosen measure, which is drawn large, then those of the overview."""
    overview = choose_series(measures, "")
    chosen = choose_series(measures, name) if name else []
    return [*chosen, *(each for each in overview if each not in chosen)]


def _order(measure: Measure) -> tuple[int, str]:
    name = str(measure)
    return (OVERVIEW.index(name) if name in OVERVIEW else len(OVERVIEW), name)


def _large(series: TrendSeries, runs: list[TrendRun], notes: Sequence[Annotation]) -> LargeChart:
    words, flags = [run_words(run) for run in runs], find_version_marks(runs)
    plot = large_plot(series, len(runs))
    return LargeChart(
        _chart(series, runs, draw_trend(series, runs, words, flags)),
        draw_strip(flags, notes, runs, plot),
        describe_series(series),
        point_texts(series, words),
    )


def _small(series: TrendSeries, runs: list[TrendRun]) -> Chart:
    return _chart(series, runs, draw_small_trend(series, runs))


def _chart(series: TrendSeries, runs: list[TrendRun], drawing: SafeString) -> Chart:
    changes = [
        (runs[change.at], change_sentence(series, change), change_look(series, change))
        for change in series.changes
    ]
    return Chart(series, show_value(series, series.values[-1].value), drawing, changes)


def _without_changes(line: list[TrendRun]) -> str:
    if len({(run.target, run.model) for run in line}) > 1:
        return "Choose one target and model to see change points."
    count = f"{len(line)} so far" if line else "none so far"
    return f"Change points need at least {FEWEST_RUNS} finished runs on the main branch, without experiments; {count}."
