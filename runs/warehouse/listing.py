"""Runs as lists show them: plain values in one query, without building six objects for each row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet

from runs.models import Run
from runs.models.run import RunState, seconds_between

COLUMNS = (
    *("pk", "state", "outcome", "passed", "failed", "errors", "cost_usd", "started", "finished"),
    *("model", "tool_version", "tags", "suite__slug", "suite__name", "suite_version__number"),
    *("target__name", "guidance__name", "guidance__number", "by__username"),
    "fingerprint__staleness__stale",
)
_TAGS = COLUMNS.index("tags")


class ListedRun(NamedTuple):
    """What a row of a list shows of a run, named as in `Run`; relations are their names."""

    pk: int
    state: str
    outcome: str
    passed: int
    failed: int
    errors: int
    cost_usd: float | None
    started: datetime | None
    finished: datetime | None
    model: str
    tool_version: str
    tags: tuple[str, ...]
    suite_slug: str
    suite_name: str
    version: int
    target: str
    guidance_name: str | None
    guidance_number: int | None
    by: str | None
    is_stale: bool | None
    """Whether the suite's files do not fit the tool any more; None where that was not checked."""

    @property
    def is_open(self) -> bool:
        return self.state in (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)

    @property
    def seconds(self) -> float | None:
        """Wall-clock time of the run, None before its end and where nobody told."""
        return seconds_between(self.started, self.finished)

    @property
    def guidance(self) -> str:
        """The guidance's name, nothing without one."""
        return self.guidance_name or (f"guidance {self.guidance_number}" if self.guidance_number else "")


def listed(runs: QuerySet[Run]) -> QuerySet[Run, Any]:
    """Return the query's rows as the values of `ListedRun`, keyed by their first."""
    return runs.select_related(None).defer(None).values_list(*COLUMNS)


def as_listed(rows: Sequence[Any]) -> list[ListedRun]:
    """Return the rows of `listed` by name."""
    return [ListedRun._make((*row[:_TAGS], tuple(row[_TAGS]), *row[_TAGS + 1 :])) for row in rows]
