"""A project at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from evalhub.teams.models import AuditEvent, Project
from runs.models import Run
from runs.warehouse.filters import OPEN
from runs.warehouse.history import RunRow, rows, runs_of
from runs.warehouse.progress import Progress, progress_of
from runs.warehouse.rates import Rate

RECENT = 400
"""Runs looked through for the sparks of suites and targets."""
MOST_RUNNING = 5


@dataclass(frozen=True)
class Week:
    """Seven days in figures."""

    rate: Rate
    trials: int
    errors: int
    runs: int
    cost_usd: float | None


@dataclass(frozen=True)
class Line:
    """A suite on a target over its last runs, oldest first."""

    latest: RunRow
    shares: list[float]


@dataclass(frozen=True)
class Glance:
    """Everything on a project's home."""

    week: Week
    lines: list[Line]
    attention: list[RunRow]
    events: list[AuditEvent]


def week_of(project: Project, *, now: datetime) -> Week:
    """Return the figures of the last seven days. One query."""
    runs = Run.objects.filter(project=project, created__gte=now - timedelta(days=7)).order_by()
    names = ("passed", "failed", "errors", "cost_usd")
    sums = runs.aggregate(**{f"all_{name}": Sum(name) for name in names})
    passed, failed, errors = (sums[f"all_{name}"] or 0 for name in names[:3])
    return Week(
        Rate(passed, passed + failed), passed + failed + errors, errors, runs.count(), sums["all_cost_usd"]
    )


def glance(project: Project, *, now: datetime) -> Glance:
    """Return a project's home without what is running. Six queries."""
    recent = list(runs_of(project).exclude(state__in=OPEN).order_by("-pk")[:RECENT])
    by_line: dict[tuple[int, int], list[Run]] = {}
    for run in recent:
        by_line.setdefault((run.suite_id, run.target_id), []).append(run)
    latest = {row.run.pk: row for row in rows([each[0] for each in by_line.values()])}
    lines = [Line(latest[each[0].pk], _shares(each)) for each in by_line.values()]
    attention = [line.latest for line in lines if line.latest.state in ("regressed", "error", "fail")]
    events = AuditEvent.objects.filter(project=project).select_related("user")[:8]
    return Glance(week_of(project, now=now), lines, attention, list(events))


def _shares(runs: list[Run]) -> list[float]:
    return [run.passed / (run.passed + run.failed) for run in runs[:20][::-1] if run.passed + run.failed]


def running_now(project: Project) -> list[tuple[Run, Progress]]:
    """Return the open runs with their progress. One query, and one for each of at most five runs."""
    found = runs_of(project).filter(state__in=OPEN).order_by("-pk")[:MOST_RUNNING]
    return [(run, progress_of(run)) for run in found]
