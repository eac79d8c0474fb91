"""The table of the runs page as CSV."""

from __future__ import annotations

from collections.abc import Iterator

from evalhub.teams.models import Project
from evalhub.web.csv_export import Cell, Table
from runs.results.run_filters import RunListFilters
from runs.results.run_list import RunRow, page_of_runs
from runs.results.run_list import rows as rows_of

AT_ONCE = 500
"""Runs read at a time: a history of any length is sent without holding it."""


def run_list_table(project: Project, filters: RunListFilters) -> Table:
    """Return all runs that match the filters, newest first. Three queries for each `AT_ONCE` runs."""
    return Table(f"{project.slug}-runs", RUN_COLUMNS, _runs(project, filters))


def _runs(project: Project, filters: RunListFilters) -> Iterator[tuple[Cell, ...]]:
    before = ""
    while True:
        page = page_of_runs(project, filters, before, size=AT_ONCE)
        yield from (_run(row) for row in rows_of(page.rows))
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
