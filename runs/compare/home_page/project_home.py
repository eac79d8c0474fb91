"""Summarise a project for its home."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, OuterRef, Subquery, Sum
from django.db.models.functions import TruncDate

from evalhub.lib.numbers import counted
from evalhub.teams import audit
from evalhub.teams.models import AuditEvent, Project
from runs.compare.home_page.lines import HomeLines, home_lines
from runs.models import Alert, Run, Target, TargetCheck, Trial
from runs.models.comparison import AlertState
from runs.models.run import OPEN
from runs.models.trial import TrialState
from runs.results.progress import Progress, progress

UNSHOWN = ("options", "fingerprint", "warnings", "target__definition", "guidance__files")
"""Columns of an open run that the home does not show."""
MOST_RUNNING = 5
DAYS = 7


class Day(NamedTuple):
    """What a day cost, judges included; None if no run of it has a known cost."""

    day: date
    cost_usd: float | None


class Waiting(NamedTuple):
    """What waits for somebody: a sentence, and the page with it."""

    text: str
    page: str


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

    lines: HomeLines
    untriaged: int
    """Untriaged regressions."""
    waiting: list[Waiting]
    days: list[Day]
    """The last seven days."""
    events: list[RecentEvent]

    @property
    def cost_usd(self) -> float | None:
        """The cost of the last seven days; None if none is known."""
        known = [day.cost_usd for day in self.days if day.cost_usd is not None]
        return sum(known) if known else None


def project_summary(project: Project, *, now: datetime) -> ProjectSummary:
    """Return a project's home without its open runs. Eight queries, eleven where a line regressed."""
    lines = home_lines(project, now=now)
    untriaged = Alert.objects.filter(project=project, state=AlertState.UNTRIAGED).count()
    events = AuditEvent.objects.filter(project=project).select_related("user")[:8]
    return ProjectSummary(
        lines=lines,
        untriaged=untriaged,
        waiting=_waiting(project, lines, untriaged),
        days=cost_by_day(project, now=now),
        events=[recent_event(event) for event in events],
    )


def cost_by_day(project: Project, *, now: datetime) -> list[Day]:
    """Return what each of the last days cost. One query."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight - timedelta(days=DAYS - 1)
    runs = Run.objects.filter(project=project, created__gte=first).order_by()
    costs = dict(runs.annotate(day=TruncDate("created")).values_list("day").annotate(cost=Sum("cost_usd")))
    days = ((first + timedelta(days=n)).date() for n in range(DAYS))
    return [Day(day, costs.get(day)) for day in days]


def _waiting(project: Project, lines: HomeLines, untriaged: int) -> list[Waiting]:
    """Return what needs somebody's attention, most urgent first. One query."""
    stale = sum(bool(line.latest.run.stale) for line in lines.lines)
    broken = _broken_targets(project)
    sentences = (
        (untriaged, counted(untriaged, "untriaged regression"), "regressions"),
        (broken, f"{counted(broken, 'target')} cannot start", "target-list"),
        (stale, f"{counted(stale, 'suite')} outdated for the tool", "suite-list"),
    )
    return [Waiting(text, page) for n, text, page in sentences if n]


def _broken_targets(project: Project) -> int:
    """Return how many accepted targets could not start at their last check. One query."""
    newest = TargetCheck.objects.filter(target=OuterRef("pk"), available__isnull=False).order_by("-pk")
    targets = Target.objects.filter(project=project, accepted=True)
    return (
        targets.annotate(available=Subquery(newest.values("available")[:1])).filter(available=False).count()
    )


def running_now(project: Project) -> list[tuple[Run, Progress]]:
    """Return the open runs with their counters. One query."""
    trials = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.RUNNING).order_by()
    at_work = Subquery(trials.values("run").annotate(n=Count("pk")).values("n"))
    # Select by state first: ordered by key, the database would scan all runs of the project.
    keys = Run.objects.filter(project=project, state__in=OPEN).order_by().values("pk")
    runs = Run.objects.filter(pk__in=keys).annotate(at_work=at_work)
    newest = runs.select_related("suite", "target", "guidance").defer(*UNSHOWN).order_by("-pk")[:MOST_RUNNING]
    for run in newest:
        run.project = project
    return [(run, progress(run, vars(run)["at_work"] or 0)) for run in newest]
