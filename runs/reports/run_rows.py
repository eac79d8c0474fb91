"""What lists say of a run as JSON, from plain values or from a run that is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet

from evalhub.web.moments import moment
from evalhub.web.paging import SIZE
from evalhub.web.prepared import prepared
from runs.models import Run
from runs.warehouse.listing import newest_runs

COLUMNS = (
    *("pk", "suite__slug", "suite_version__number", "suite__format", "target__name", "model", "state"),
    *("outcome", "launch_id", "created", "started", "finished", "by__username", "trigger", "tags", "branch"),
    *("commit", "trials", "passed", "failed", "errors", "cancelled", "tool_version", "guidance__sha256"),
    *("guidance__name", "guidance__number", "cost_usd", "tokens_in", "tokens_out", "baseline_id"),
    *("fingerprint__staleness__stale", "error"),
)


class RunValues(NamedTuple):
    """The values of `COLUMNS`; relations are their names."""

    pk: int
    suite: str
    version: int
    format: str
    target: str
    model: str
    state: str
    outcome: str
    launch: int
    created: datetime
    started: datetime | None
    finished: datetime | None
    by: str | None
    trigger: str
    tags: list[str]
    branch: str
    commit: str
    trials: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    tool_version: str
    guidance: str | None
    guidance_name: str | None
    guidance_number: int | None
    cost_usd: float | None
    tokens_in: int
    tokens_out: int
    baseline: int | None
    stale: bool | None
    error: str


def values_of(runs: QuerySet[Run]) -> QuerySet[Run, Any]:
    """Return the query's rows as plain values, keyed by their first."""
    return runs.select_related(None).defer(None).values_list(*COLUMNS)


@prepared
def newest_values(project: int, below: int) -> QuerySet[Run, Any]:
    """Return the newest runs of a project below a key, one more than a page holds, as `values_of` does."""
    return values_of(newest_runs(project, below))[: SIZE + 1]


def rows_json(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the rows of `values_of` as JSON, but for moments, which `pages.encoded` writes as `moment` does."""
    return [_json(RunValues._make(row)) for row in rows]


def run_row(run: Run) -> dict[str, Any]:
    """Return what a list says of a run, without a query.

    Expects suite_version, suite, target, guidance and by to be loaded, and `is_stale` as of `history.runs_of`.
    """
    guidance = run.guidance
    read = RunValues(
        pk=run.pk,
        suite=run.suite.slug,
        version=run.suite_version.number,
        format=run.suite.format,
        target=run.target.name,
        model=run.model,
        state=run.state,
        outcome=run.outcome,
        launch=run.launch_id,
        created=run.created,
        started=run.started,
        finished=run.finished,
        by=run.by.get_username() if run.by else None,
        trigger=run.trigger,
        tags=run.tags,
        branch=run.branch,
        commit=run.commit,
        trials=run.trials,
        passed=run.passed,
        failed=run.failed,
        errors=run.errors,
        cancelled=run.cancelled,
        tool_version=run.tool_version,
        guidance=guidance.sha256 if guidance else None,
        guidance_name=guidance.name if guidance else None,
        guidance_number=guidance.number if guidance else None,
        cost_usd=run.cost_usd,
        tokens_in=run.tokens_in,
        tokens_out=run.tokens_out,
        baseline=run.baseline_id,
        stale=vars(run)["is_stale"],
        error=run.error,
    )
    row = _json(read)
    return row | {name: moment(row[name]) for name in ("created", "started", "finished")}


def _json(run: RunValues) -> dict[str, Any]:
    began, ended = run.started, run.finished
    number = run.guidance_number
    return {
        "id": run.pk,
        "suite": run.suite,
        "suite_version": run.version,
        "format": run.format,
        "target": run.target,
        "model": run.model or None,
        "state": run.state,
        "outcome": run.outcome or None,
        "launch": run.launch,
        "created": run.created,
        "started": began,
        "finished": ended,
        "by": run.by,
        "trigger": run.trigger,
        "tags": run.tags,
        "branch": run.branch or None,
        "commit": run.commit or None,
        "trials": run.trials,
        "passed": run.passed,
        "failed": run.failed,
        "errors": run.errors,
        "cancelled": run.cancelled,
        "tool_version": run.tool_version or None,
        "guidance": run.guidance[:8] if run.guidance else None,
        "guidance_name": run.guidance_name or (f"guidance {number}" if number else None),
        "cost_usd": run.cost_usd,
        "tokens": {"input": run.tokens_in, "output": run.tokens_out},
        "seconds": (ended - began).total_seconds() if began and ended else None,
        "baseline": run.baseline,
        "stale": bool(run.stale),
        "error": run.error,
        "url": f"/runs/{run.pk}/",
    }
