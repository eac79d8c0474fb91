"""Sum up a project's week: runs, verdicts, and regressions that were opened and closed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db import transaction

from evalhub.teams.models import AuditEvent, Project
from evaluators.statistics.measure_change import ChangeVerdict
from runs.alerts.notifications.messages import NotificationMessage, absolute
from runs.compare.alert_words import alert_title
from runs.db.outbox import record_event
from runs.models import Alert, Channel, Notification, Run
from runs.models.comparison import AlertKind, AlertState
from runs.models.notification import NotificationEvent
from runs.models.run import RunState

CLOSED = frozenset((AlertState.FIXED, AlertState.WONT_FIX, AlertState.INVALID))
OUTCOMES = {"pass": "passed", "fail": "failed", "error": "ended as errors"}
MOST_LINES = 10
"""Most new regressions that a digest lists."""


@dataclass(frozen=True)
class WeekInProject:
    """What happened in a project from Monday to Sunday."""

    monday: datetime
    outcomes: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    opened: list[Alert] = field(default_factory=list)
    closed: int = 0
    still_open: int = 0

    @property
    def after_change(self) -> int:
        """How many opened alerts are about a change of guidance or model, not about the tool."""
        return sum(each.kind == AlertKind.AFTER_CHANGE for each in self.opened)

    @property
    def has_news(self) -> bool:
        return bool(self.outcomes or self.opened or self.closed)


def monday_of(now: datetime) -> datetime:
    """Return when the week began, in UTC (ISO 8601: on Monday)."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=midnight.weekday())


def record_digests(*, now: datetime) -> int:
    """Store the digest of last week for each project with a channel that chose it; return their number.

    At most one a week and project, none for a week without news, and none for a week before the channel existed.
    """
    monday = monday_of(now)
    channels = Channel.objects.filter(created__lt=monday).select_related("project").order_by("project")
    projects = {each.project for each in channels if NotificationEvent.DIGEST in each.events}
    return sum(_record(project, monday - timedelta(days=7)) for project in projects)


def _record(project: Project, monday: datetime) -> bool:
    year, week, _ = monday.isocalendar()
    key = f"digest:{project.pk}:{year}-W{week:02d}"
    if Notification.objects.filter(project=project, key=key).exists():
        return False
    summary = summarize_week(project, monday)
    if not summary.has_news:
        return False
    with transaction.atomic():
        record_event(
            project.pk, NotificationEvent.DIGEST, key, content=digest_message(project, summary).as_json()
        )
    return True


def summarize_week(project: Project, monday: datetime) -> WeekInProject:
    """Return what happened in the seven days from `monday` on. Four queries."""
    until = monday + timedelta(days=7)
    runs = Run.objects.filter(project=project, finished__gte=monday, finished__lt=until)
    ended = list(runs.filter(state=RunState.FINISHED).values_list("outcome", "verdict"))
    alerts = Alert.objects.filter(project=project)
    opened = alerts.filter(created__gte=monday, created__lt=until).select_related(
        "run__suite", "run__target", "run__project", "run__guidance", "run__baseline"
    )
    triaged = AuditEvent.objects.filter(project=project, action="alert.triage", at__gte=monday, at__lt=until)
    return WeekInProject(
        monday,
        Counter(outcome for outcome, _ in ended),
        Counter(verdict for _, verdict in ended if verdict),
        list(opened),
        len({subject for subject, detail in triaged.values_list("subject", "detail") if _closes(detail)}),
        alerts.exclude(state__in=CLOSED).count(),
    )


def _closes(detail: dict[str, object]) -> bool:
    changed = detail.get("changed")
    return isinstance(changed, list) and "state" in changed and detail.get("state") in CLOSED


def digest_message(project: Project, week: WeekInProject) -> NotificationMessage:
    """Return a week in words."""
    last = week.monday + timedelta(days=6)
    title = f"Week {week.monday:%-d %b} to {last:%-d %b %Y}: {project.name}"
    lines = [
        _runs(week),
        _alerts(week),
        *_list_opened(week.opened),
    ]
    if week.verdicts:
        verdicts = (f"{ChangeVerdict(name).label} {n}" for name, n in week.verdicts.most_common())
        lines.insert(1, f"Verdicts: {', '.join(verdicts)}.")
    data = {
        "project": project.slug,
        "from": week.monday.date().isoformat(),
        "to": last.date().isoformat(),
        "runs": dict(week.outcomes),
        "verdicts": dict(week.verdicts),
        "regressions": {
            "opened": len(week.opened) - week.after_change,
            "after_change": week.after_change,
            "closed": week.closed,
            "open": week.still_open,
        },
    }
    return NotificationMessage(
        title, lines, absolute(project.get_absolute_url()), [["Project", project.name]], data
    )


def _runs(week: WeekInProject) -> str:
    parts = [f"{week.outcomes[key]} {word}" for key, word in OUTCOMES.items() if week.outcomes[key]]
    total = _count(week.outcomes.total(), "run")
    return f"{total} finished: {', '.join(parts)}." if parts else f"{total} finished."


def _alerts(week: WeekInProject) -> str:
    opened = f"{_count(len(week.opened) - week.after_change, 'regression')} opened"
    after = f", {week.after_change} worse after a change of guidance or model" if week.after_change else ""
    return f"{opened}{after}, {week.closed} closed, {week.still_open} open now."


def _words(alert: Alert) -> str:
    state = alert.state_label
    return state if alert.kind == AlertKind.REGRESSION else f"{alert_title(alert)}, {state}"


def _list_opened(alerts: list[Alert]) -> list[str]:
    shown = [
        f"- {alert.run.suite.name} on {alert.run.target.name}, run {alert.run_id} ({_words(alert)}): "
        f"{absolute(alert.run.get_absolute_url())}"
        for alert in alerts[:MOST_LINES]
    ]
    more = len(alerts) - MOST_LINES
    return [*shown, f"- and {more} more"] if more > 0 else shown


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
