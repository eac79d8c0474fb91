"""Summarise a project for its home."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, OuterRef, Q, Subquery, Sum

from evalhub.teams import audit
from evalhub.teams.models import AuditEvent, Project
from runs.compare.home_page.attention import Attention, OpenCounts, attention, open_alerts, open_counts
from runs.models import Run, Trial
from runs.models.run import NOT_CONFIRMING, OPEN
from runs.models.trial import TrialState
from runs.results.progress import Progress, progress
from runs.results.rates import Rate
from runs.results.run_list import RunRow, rows
from runs.results.run_rows import listed_runs

RECENT = 400
"""Recent runs read for sparklines."""
UNSHOWN = ("options", "fingerprint", "warnings", "target__definition", "guidance__files")
"""Columns of an open run that the home does not show."""
LAST = 20
"""Runs per sparkline."""
MOST_RUNNING = 5
DAYS = 7


@dataclass(frozen=True)
class LastSevenDays:
    """Seven days in figures."""

    rate: Rate
    before: Rate
    """The pass rate of the seven days before."""
    trials: int
    errors: int
    runs: int
    cost_usd: float | None

    @property
    def change(self) -> float | None:
        """Return the change of the pass rate from the week before, None if either has no trial."""
        return self.rate.share - self.before.share if self.rate.n and self.before.n else None

    @property
    def points(self) -> float:
        """Return the absolute difference in percentage points."""
        return abs(self.change or 0.0) * 100


@dataclass(frozen=True)
class SuiteLine:
    """A suite on a target over its last runs, oldest first."""

    latest: RunRow
    rates: list[Rate]

    @property
    def shares(self) -> list[float]:
        return [rate.share for rate in self.rates]

    @property
    def band(self) -> list[tuple[float, float]]:
        """Return the ends of each share's 95 % interval."""
        return [(rate.low, rate.high) for rate in self.rates]


OF_RUNS = ("alert.confirm", "alert.triage", "baseline.set", "baseline.unset", "run.cancel", "run.request")
"""Actions of the audit log whose subjects name runs."""


class RecentEvent(NamedTuple):
    """A recent audit event, in words."""

    at: datetime
    by: str
    words: list[str]
    """Alternates between text and run numbers."""


def recent_event(event: AuditEvent) -> RecentEvent:
    """Return an audit event in words."""
    subject = f" {event.subject}" if event.subject else ""
    done = audit.action_text(event.action)
    words = [subject]
    if event.action in OF_RUNS:
        # In "2 runs, 7 to 8" the first number is a count.
        words = re.split(r"(?<!^ )\b([0-9]+)\b", subject)
    return RecentEvent(
        event.at, event.user.username if event.user else "somebody", [done + words[0], *words[1:]]
    )


@dataclass(frozen=True)
class ProjectSummary:
    """Content of a project's home."""

    week: LastSevenDays
    lines: list[SuiteLine]
    alerts: OpenCounts
    attention: list[Attention]
    events: list[RecentEvent]


def last_seven_days(project: Project, *, now: datetime) -> LastSevenDays:
    """Return the figures of the last seven days. One query."""
    begin, before = now - timedelta(days=DAYS), now - timedelta(days=2 * DAYS)
    runs = Run.objects.filter(project=project, created__gte=before).order_by()
    here = Q(created__gte=begin)
    sums = runs.aggregate(
        **{f"all_{name}": Sum(name, filter=here) for name in ("passed", "failed", "errors", "cost_usd")},
        **{f"before_{name}": Sum(name, filter=~here) for name in ("passed", "failed")},
        runs=Count("pk", filter=here),
    )
    passed, failed, errors = (sums[f"all_{name}"] or 0 for name in ("passed", "failed", "errors"))
    passed_before, failed_before = (sums[f"before_{name}"] or 0 for name in ("passed", "failed"))
    return LastSevenDays(
        rate=Rate(passed, passed + failed),
        before=Rate(passed_before, passed_before + failed_before),
        trials=passed + failed + errors,
        errors=errors,
        runs=sums["runs"],
        cost_usd=sums["all_cost_usd"],
    )


def project_summary(project: Project, *, now: datetime) -> ProjectSummary:
    """Return a project's home without its open runs. Eight queries, nine if it has very many alerts."""
    lines = _lines(project)
    alerts = open_alerts(project)
    events = AuditEvent.objects.filter(project=project).select_related("user")[:8]
    return ProjectSummary(
        week=last_seven_days(project, now=now),
        lines=lines,
        alerts=open_counts(project, alerts),
        attention=attention(project, alerts, [line.latest for line in lines], now=now),
        events=[recent_event(event) for event in events],
    )


def _lines(project: Project) -> list[SuiteLine]:
    """Return the lines of every suite and target of the newest runs. Four queries."""
    recent = (
        Run.objects.filter(NOT_CONFIRMING, project=project).exclude(state__in=OPEN).order_by("-pk")[:RECENT]
    )
    rates: dict[tuple[int, int], list[Rate]] = {}
    newest: dict[tuple[int, int], int] = {}
    for pk, suite, target, passed, failed in recent.values_list(
        "pk", "suite_id", "target_id", "passed", "failed"
    ):
        newest.setdefault((suite, target), pk)
        rates.setdefault((suite, target), []).append(Rate(passed, passed + failed))
    latest = rows(listed_runs(list(newest.values())))
    return [
        SuiteLine(row, [rate for rate in own[:LAST][::-1] if rate.n])
        for row, own in zip(latest, rates.values(), strict=True)
    ]


def running_now(project: Project) -> list[tuple[Run, Progress]]:
    """Return the open runs with their counters. One query."""
    trials = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.RUNNING).order_by()
    at_work = Subquery(trials.values("run").annotate(n=Count("pk")).values("n"))
    # Select by state first: ordered by key, the database would scan all runs of the project.
    keys = Run.objects.filter(project=project, state__in=OPEN).order_by().values("pk")
    runs = Run.objects.filter(pk__in=keys).annotate(at_work=at_work)
    found = runs.select_related("suite", "target", "guidance").defer(*UNSHOWN).order_by("-pk")[:MOST_RUNNING]
    for run in found:
        run.project = project
    return [(run, progress(run, vars(run)["at_work"] or 0)) for run in found]
