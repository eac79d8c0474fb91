"""Views of trends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from django.http import HttpResponseBase, QueryDict
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import Cell, Table, csv_response, wants_csv
from evalhub.web.fragments import page_or_fragment
from evaluators.statistics.change_points import FEWEST_RUNS
from runs.compare.default_suite import newest_suite
from runs.compare.trend_runs import (
    Mark,
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
from runs.compare.trends_page.interactive_trend import Figure, interactive_figure
from runs.compare.trends_page.trend import (
    RunWords,
    change_look,
    change_sentence,
    run_words,
    show_value,
    trend_drawing,
)
from runs.models import Measure
from runs.results.counting import REPORTED, counted_by_events, ends_sentence
from runs.results.measures import label_of
from scenarios.models import Suite

OWN_COLUMNS = 4
"""Measures with a column of their own in the table."""


class Chart(NamedTuple):
    """A series with its drawing and change points in words."""

    series: TrendSeries
    newest: str
    drawing: SafeString
    changes: list[tuple[TrendRun, str, str]]
    """First run of each change, what changed, and its class."""


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
    charts: list[Chart]
    subcommands: list[Chart]
    without_changes: str
    """Why change points are not searched; empty where they are."""
    baseline: int | None
    compared_by: str
    """By which exit codes tool use is counted, as a sentence, where not every run has recorded ones."""
    figure: Figure | None
    """The chosen measure to zoom into; None for the overview, or with fewer than two values."""

    @property
    def columns(self) -> list[TrendSeries]:
        """Return the measures of the table."""
        return [chart.series for chart in self.charts[:OWN_COLUMNS]]

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


def trend_page(suite: Suite, query: QueryDict) -> TrendPage:
    """Return a suite's trends. Three to six queries.

    They read the newest runs, once more if filtered, their measures, their rollups, the scenarios of several versions
    of the suite, and subcommands.
    """
    newest = newest_runs_of_suite(suite.pk, TrendFilters())
    filters = filters_of(query, newest)
    runs = newest_runs_of_suite(suite.pk, filters) if filters.in_force else newest
    measures = measures_of(runs) if runs else []
    name = query.get("measure", "")
    picked = choose_series(measures, name)
    line = [run for run in runs if is_of_line(run, filters)]
    baseline = line[-1].baseline if line else None
    flags, words = marks(runs), [run_words(run) for run in runs]
    by_events = counted_by_events({run.pk: run.configuration.counting for run in runs})
    series = series_of(picked, runs, filters, baseline, by_events) if picked else []
    subcommands = subcommand_series(runs) if series else []
    return TrendPage(
        filters,
        name if name in {str(each) for each in measures} else "",
        choices_of(newest),
        [
            (str(each), f"{each.layer.capitalize()}: {label_of(each)}")
            for each in sorted(measures, key=_order)
        ],
        runs,
        [_chart(each, runs, words, flags) for each in series if each.values],
        [_chart(each, runs, words, flags) for each in subcommands],
        "" if may_have_change_points(runs, filters) else _without_changes(line),
        baseline,
        ends_sentence([REPORTED]) if by_events else "",
        _figure(series, runs, flags) if name else None,
    )


def _figure(series: list[TrendSeries], runs: list[TrendRun], flags: list[Mark]) -> Figure | None:
    """Return the figure of a single series with at least two values."""
    if len(series) != 1 or len(series[0].values) < 2:
        return None
    return interactive_figure(series[0], runs, flags)


def _order(measure: Measure) -> tuple[int, str]:
    name = str(measure)
    return (OVERVIEW.index(name) if name in OVERVIEW else len(OVERVIEW), name)


def _chart(series: TrendSeries, runs: list[TrendRun], words: list[RunWords], flags: list[Mark]) -> Chart:
    changes = [
        (runs[each.at], change_sentence(series, each), change_look(series, each)) for each in series.changes
    ]
    newest = show_value(series, series.values[-1].value)
    return Chart(series, newest, trend_drawing(series, runs, words, flags), changes)


def _without_changes(line: list[TrendRun]) -> str:
    if len({(run.target, run.model) for run in line}) > 1:
        return "Choose one target and model to see change points."
    count = f"{len(line)} so far" if line else "none so far"
    return f"Change points need at least {FEWEST_RUNS} finished runs on the main branch, without experiments; {count}."


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


def _row(run: TrendRun, series: TrendSeries, value: TrendValue) -> tuple[Cell, ...]:
    return (
        *(run.pk, series.name, series.unit, value.value, value.n, value.half),
        *(run.guidance_name, run.tool_version, run.target, run.model, run.at, run.is_stale),
    )


def _chosen_suite(
    project: Project, slug: str, default: Callable[[Project], int | None]
) -> tuple[list[Suite], Suite | None]:
    """Return the project's suites and the requested one, else `default`'s, else the first."""
    suites = list(Suite.objects.filter(project=project))
    requested = next((suite for suite in suites if suite.slug == slug), None)
    if requested or not suites:
        return suites, requested
    newest = default(project)
    return suites, next((suite for suite in suites if suite.pk == newest), suites[0])


@require_safe
@project_page()
def trends(request: ProjectRequest) -> HttpResponseBase:
    """Show a suite's measures and subcommands over its runs, as charts and a table."""
    suites, suite = _chosen_suite(request.access.project, request.GET.get("suite", ""), newest_suite)
    page = trend_page(suite, request.GET) if suite else None
    if wants_csv(request):
        return csv_response(trend_table(suite.slug if suite else "", page))
    context = {
        "suite_choices": [(each.slug, each.name) for each in suites],
        "suite": suite,
        "trend": page,
    }
    return page_or_fragment(request, "compare/trends/trends.html", "compare/trends/_trend.html", context)
