"""Views of the runs page: the list and tags, with figures of pass rate, first-try success and cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_safe

from evalhub.lib import numbers
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.charts import Column, draw_columns
from evalhub.web.csv_export import Cell, Table, chosen_table
from evalhub.web.middleware import page_or_fragment
from evaluators.statistics.descriptive import Z_95
from evaluators.statistics.measure_change import Sample
from runs.errors import RequestError
from runs.models import Run
from runs.models.comparison import VERDICTS
from runs.results.address_filters import no_match
from runs.results.rates import Rate, run_rate
from runs.results.run_filters import (
    STATES,
    RunListFilters,
    active_run_filters,
    left_without,
    read_filter_choices,
)
from runs.results.run_list import RowBaseline, RunRow, page_of_runs, read_rows
from runs.results.run_tags import read_tags, set_tags

MOST = 20
FEWEST = 2
"""Fewest runs for a figure: a table shows one number better."""


class Recent(NamedTuple):
    """One run's values."""

    run: int
    at: datetime | None
    rate: Rate
    cost_usd: float | None
    first_try: Sample | None
    regressed: bool


class Figure(NamedTuple):
    """One figure, ready for the page."""

    title: str
    now: str
    drawing: SafeString


class Figures(NamedTuple):
    """The figures of several runs, with their baseline as a dotted line."""

    runs: int
    baseline: int | None
    drawn: tuple[Figure, ...]

    @property
    def has_costs(self) -> bool:
        """Return whether any cost is known."""
        return bool(self.drawn[-1].drawing)


def recent_figures(rows: Sequence[RunRow]) -> Figures | None:
    """Return the figures of the newest runs of a line, with its newest baseline; None for fewer than two or several lines.

    `rows` are a list's, newest first.
    """
    finished = [row for row in rows if row.run.passed + row.run.failed and not row.run.is_open][:MOST]
    if (
        len(finished) < FEWEST
        or len({(row.run.suite, row.run.target, row.run.model) for row in finished}) > 1
    ):
        return None
    baseline = next((row.baseline for row in finished if row.baseline), None)
    return drawn_figures(tuple([_recent(row) for row in reversed(finished)]), baseline)


def _recent(row: RunRow) -> Recent:
    run = row.run
    # Without the trials of a retest, which say nothing of a success's cost.
    cost = None if run.cost_per_success is None else run.cost_per_success * run.passed
    return Recent(run.id, run.finished, row.rate, cost, row.first_try, row.verdict == "regressed")


def drawn_figures(runs: tuple[Recent, ...], baseline: RowBaseline | None) -> Figures:
    """Return the figures of runs, oldest first, with a dotted baseline if there is one."""
    passes = run_rate(baseline) if baseline else Rate(0, 0)
    cost = _cost(baseline.cost_usd, passes) if baseline else None
    first_try = baseline.first_try.mean if baseline and baseline.first_try else None
    figures = (
        _figure(
            "Pass rate",
            [_pass_rate_column(run) for run in runs],
            passes.share if passes.n else None,
            _percent,
            1.0,
        ),
        _figure("First-try success", [_first_try(run) for run in runs], first_try, _percent, 1.0),
        _figure("Cost per passed trial", [_cost_per_pass(run) for run in runs], cost, numbers.format_money),
    )
    return Figures(len(runs), baseline.pk if baseline else None, figures)


def _figure(
    title: str,
    drawn: list[Column],
    baseline: float | None,
    show: Callable[[float], str],
    end: float | None = None,
) -> Figure:
    known = [each.value for each in drawn if each.value is not None]
    if not known:
        return Figure(title, numbers.UNMEASURED, SafeString(""))
    end = end or numbers.round_end(1.1 * max(known if baseline is None else [*known, baseline]))
    newest = drawn[-1].value
    now = numbers.UNMEASURED if newest is None else show(newest)
    return Figure(title, now, draw_columns(drawn, end=end, baseline=baseline, show=show))


def _percent(share: float) -> str:
    return numbers.format_percent(share)


def _pass_rate_column(run: Recent) -> Column:
    rate = run.rate
    return Column(run.run, run.at, rate.share, rate.low, rate.high, run.regressed)


def _first_try(run: Recent) -> Column:
    if run.first_try is None:
        return Column(run.run, run.at, None)
    n, mean, m2 = run.first_try
    half = Z_95 * math.sqrt(m2 / (n - 1) / n) if n > 1 else None
    ends = (None, None) if half is None else (max(0.0, mean - half), min(1.0, mean + half))
    return Column(run.run, run.at, mean, *ends)


def _cost(cost_usd: float | None, rate: Rate) -> float | None:
    return None if cost_usd is None or not rate.passed else cost_usd / rate.passed


def _cost_per_pass(run: Recent) -> Column:
    """Return the cost per passed trial; its interval follows from the pass rate."""
    rate = Rate(run.rate.passed, run.rate.n)
    value = _cost(run.cost_usd, rate)
    if value is None or run.cost_usd is None:
        return Column(run.run, run.at, None)
    return Column(
        run.run, run.at, value, run.cost_usd / (rate.n * rate.high), run.cost_usd / (rate.n * rate.low)
    )


AT_ONCE = 500
"""Runs read at a time: a history of any length is sent without holding it."""


def run_list_table(project: Project, filters: RunListFilters) -> Table:
    """Return all runs that match the filters, newest first. Three queries for each `AT_ONCE` runs."""
    return Table(f"{project.slug}-runs", RUN_COLUMNS, _runs(project, filters))


def _runs(project: Project, filters: RunListFilters) -> Iterator[tuple[Cell, ...]]:
    before = ""
    while True:
        page = page_of_runs(project, filters, before, size=AT_ONCE)
        yield from (_run(row) for row in read_rows(page.rows))
        if page.before is None:
            return
        before = str(page.before)


RUN_COLUMNS = (
    *("run", "state", "outcome", "verdict", "stale", "suite", "suite_version", "target", "model"),
    *("tool_version", "guidance", "trials", "passed", "failed", "errors", "cancelled", "pass_rate"),
    *("pass_rate_low", "pass_rate_high", "baseline", "baseline_pass_rate", "difference", "judge"),
    *(
        "first_try",
        "cost_usd",
        "cost_per_success",
        "seconds",
        "created",
        "started",
        "finished",
        "by",
        "branch",
        "commit",
        "tags",
        "verdict_reason",
    ),
)


def _run(row: RunRow) -> tuple[Cell, ...]:
    run, rate = row.run, row.rate
    shares = (rate.share, rate.low, rate.high) if rate.n else (None, None, None)
    return (
        *(run.id, run.state, run.outcome, run.verdict, run.stale, run.suite, run.suite_version, run.target),
        *(run.model, run.tool_version, run.guidance_name, run.trials, run.passed, run.failed, run.errors),
        *(run.cancelled, *shares, run.baseline, row.before, row.change, row.judge),
        *(row.first_try.mean if row.first_try else None, run.cost_usd, run.cost_per_success, run.seconds),
        *(run.created, run.started, run.finished, run.by, run.branch, run.commit, " ".join(run.tags)),
        run.verdict_reason,
    )


SHOWN_TAGS = 8


COLUMNS = {
    "tool": "Tool, guidance",
    "interval": "95 % interval",
    "verdict": "Verdict",
    "judge": "Judge",
    "first_try": "First-try",
    "cost": "Cost",
    "tokens": "Tokens",
    "time": "Time",
    "started": "Started, by",
    "branch": "Branch, commit",
    "tags": "Tags",
}
"""Labels of the columns that can be hidden, in their order."""
DEFAULT = ("tool", "interval", "verdict", "judge", "first_try", "cost", "time", "started", "tags")


@require_safe
@project_page()
def run_list(request: ProjectRequest) -> HttpResponseBase:
    """List the runs that match the filters."""
    project, filters = request.access.project, RunListFilters.of(request.GET)
    if table := chosen_table(request, {"runs": lambda: run_list_table(project, filters)}):
        return table
    page = page_of_runs(project, filters, request.GET.get("before", ""))
    lifts = {run.launch for run in page.rows if run.is_lift and run.asked_baseline}
    # A lift is one row: that of its run with the skill.
    shown_rows = read_rows([run for run in page.rows if run.launch not in lifts or run.asked_baseline])
    available = read_filter_choices(project)
    left = left_without(project, filters) if filters.in_force and not shown_rows else None
    chips = active_run_filters(filters, available, left)
    context = {
        "rows": shown_rows,
        "page": page,
        "figures": recent_figures(shown_rows) if page.first else None,
        "older": page.older(request.GET) if page.before else "",
        "filters": filters,
        "in_force": chips,
        "cleared": urlencode([("col", each) for each in filters.col]),
        "no_match": no_match(
            "run", [(each.name, each.value, each.left) for each in chips], older=not page.first
        ),
        "choices": available,
        "frequent_tags": available.tags[:SHOWN_TAGS],
        "states": STATES,
        "verdicts": VERDICTS,
        "columns": COLUMNS,
        "shown": shown_columns(filters.col),
        "may_upload": request.access.may("upload"),
        "may_tag": request.access.may("run"),
    }
    return page_or_fragment(request, "results/runs/runs.html", "results/runs/_run_table.html", context)


@require_http_methods(["GET", "POST"])
@project_page("run")
def run_tags(request: ProjectRequest, pk: int) -> HttpResponse:
    """Edit a run's tags in place: the form, or the tags as saved. Tags that changed in between are not overwritten."""
    run = Run.objects.select_related("project").filter(project=request.access.project, pk=pk).first()
    if run is None:
        raise Http404
    text, error = ", ".join(run.tags), ""
    if request.method == "POST":
        text = request.POST.get("tags", "")
        try:
            set_tags(run, read_tags(text), was=request.POST.getlist("was"), by=request.user)
        except RequestError as problem:
            error = str(problem)
            run.refresh_from_db(fields=["tags"])
        if not request.htmx and not error:
            messages.success(request, f"Saved the tags of run {pk}.")
            return redirect(run)
    editing = bool(error) or (request.method == "GET" and "cancel" not in request.GET)
    context = {"run": run, "editing": editing, "text": text, "error": error}
    status = 422 if error else 200
    return page_or_fragment(
        request, "results/runs/tags.html", "results/runs/_tags.html", context, status=status
    )


def shown_columns(chosen: Sequence[str]) -> list[str]:
    """Return the columns to show, in the table's order; the default ones if none that exists is chosen."""
    wanted = {*chosen} & COLUMNS.keys() or {*DEFAULT}
    return [name for name in COLUMNS if name in wanted]
