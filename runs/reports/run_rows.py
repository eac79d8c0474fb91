"""What lists say of a run as JSON, from plain values or from a run that is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet
from msgspec import Struct, to_builtins

from evalhub.web.moments import moment
from runs.models import Run
from runs.models.run import seconds_between

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


class Tokens(Struct):
    """What the models of a run read and wrote."""

    input: int
    output: int


class RunJson(Struct):
    """What a list says of a run, in the order of its JSON."""

    id: int
    suite: str
    suite_version: int
    format: str
    target: str
    model: str | None
    state: str
    outcome: str | None
    launch: int
    created: datetime
    started: datetime | None
    finished: datetime | None
    by: str | None
    trigger: str
    tags: list[str]
    branch: str | None
    commit: str | None
    trials: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    tool_version: str | None
    guidance: str | None
    guidance_name: str | None
    cost_usd: float | None
    tokens: Tokens
    seconds: float | None
    baseline: int | None
    stale: bool
    error: str
    url: str


def rows_json(rows: Sequence[Any]) -> list[RunJson]:
    """Return the rows of `values_of` as `pages.encoded` writes them, moments as `moment` does."""
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
    told: dict[str, Any] = to_builtins(_json(read), builtin_types=(datetime,))
    return told | {name: moment(told[name]) for name in ("created", "started", "finished")}


def _json(run: RunValues) -> RunJson:
    began, ended = run.started, run.finished
    number = run.guidance_number
    # By position: by name takes twice as long.
    return RunJson(
        run.pk,
        run.suite,
        run.version,
        run.format,
        run.target,
        run.model or None,
        run.state,
        run.outcome or None,
        run.launch,
        run.created,
        began,
        ended,
        run.by,
        run.trigger,
        run.tags,
        run.branch or None,
        run.commit or None,
        run.trials,
        run.passed,
        run.failed,
        run.errors,
        run.cancelled,
        run.tool_version or None,
        run.guidance[:8] if run.guidance else None,
        run.guidance_name or (f"guidance {number}" if number else None),
        run.cost_usd,
        Tokens(run.tokens_in, run.tokens_out),
        seconds_between(began, ended),
        run.baseline,
        bool(run.stale),
        run.error,
        f"/runs/{run.pk}/",
    )
