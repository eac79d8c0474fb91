"""Read a suite's trends for their page and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.safestring import SafeString

from evaluators.statistics.change_points import FEWEST_RUNS
from runs.compare.annotations import trend_annotations
from runs.compare.trend_runs import (
    TrendChoices,
    TrendFilters,
    TrendRun,
    choices_of,
    filters_of,
    is_of_line,
    marks,
    newest_runs_of_suite,
)
from runs.compare.trend_series import (
    OVERVIEW,
    TrendSeries,
    TrendValue,
    choose_series,
    may_have_change_points,
    measures_of,
    series_of,
    subcommand_series,
)
from runs.compare.trends_page.last_change import LastChange, last_change
from runs.compare.trends_page.strip import draw_strip
from runs.compare.trends_page.trend import draw_small_trend, draw_trend, large_plot
from runs.compare.trends_page.words import (
    change_look,
    change_sentence,
    point_texts,
    run_words,
    show_value,
    summary,
)
from runs.models import Annotation, Measure
from runs.results.counting import NOT_COMPARED, countings_of
from runs.results.measures import label_of
from scenarios.models import Suite

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
        from runs.compare.trends_page.interactive_trend import interactive_figure

        if self.large is None:
            return ""
        series, texts = self.large.chart.series, self.large.texts
        return str(interactive_figure(series, self.runs, texts, marks(self.runs)).to_json())

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
    filters = filters_of(query, newest)
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
        last_change(suite.name, changed, picked, runs, line, marks(runs)) if series else None,
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
    words, flags = [run_words(run) for run in runs], marks(runs)
    plot = large_plot(series, len(runs))
    return LargeChart(
        _chart(series, runs, draw_trend(series, runs, words, flags)),
        draw_strip(flags, notes, runs, plot),
        summary(series),
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
