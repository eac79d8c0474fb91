"""Store what to notify people of, in the transaction of the event itself, so that neither is stored alone."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from runs.db.transactions import request_job
from runs.models import Alert, Channel, Delivery, Job, Notification, Run
from runs.models.comparison import OF_SUITE, AlertKind
from runs.models.notification import ChannelKind, NotificationEvent
from runs.models.run import RunState, Trigger

RECENT = timedelta(days=1)
"""Imported results, and changed scores, of runs that finished earlier aren't news."""


def record_alert(alert: Alert) -> None:
    """Store that an alert is to be notified of; nothing if it was. Requires a transaction."""
    kind = AlertKind.REGRESSION if alert.kind in OF_SUITE else alert.kind
    key = f"{kind}:{alert.run_id}"
    _record_event(alert.project_id, _alert_event(alert), key, run_id=alert.run_id, alert=alert)


def _alert_event(alert: Alert) -> NotificationEvent:
    if alert.kind == AlertKind.AFTER_CHANGE:
        return NotificationEvent.AFTER_CHANGE
    return NotificationEvent.REGRESSION


def record_failure(run: Run) -> None:
    """Store that a run ended as an error; nothing for other runs. Requires a transaction."""
    if run.trigger == Trigger.CONFIRM:
        # Its alert says what became of it.
        return
    if run.state == RunState.FINISHED and run.outcome == "error" and is_recent(run):
        _record_event(run.project_id, NotificationEvent.RUN_FAILED, f"run-failed:{run.pk}", run_id=run.pk)


def record_assignment(alert: Alert, *, by: User | None) -> None:
    """Store that an alert was assigned to somebody else than the one who did it. Requires a transaction."""
    if alert.assignee is not None and alert.assignee != by:
        key = f"assigned:{alert.pk}:{uuid.uuid4().hex}"
        event = NotificationEvent.ASSIGNED
        _record_event(
            alert.project_id, event, key, run_id=alert.run_id, alert=alert, to=alert.assignee, by=by
        )


def is_recent(run: Run) -> bool:
    """Return whether a closed run is news."""
    return run.finished is not None and timezone.now() - run.finished < RECENT


def _record_event(
    project_id: int,
    event: NotificationEvent,
    key: str,
    *,
    run_id: int,
    alert: Alert | None = None,
    to: User | None = None,
    by: User | None = None,
) -> None:
    """Store an event and a delivery for each channel that chose it; the same key again stores nothing.

    Requires a transaction. One query where no channel chose it.
    """
    channels = [each for each in Channel.objects.filter(project=project_id) if event in each.events]
    if event is NotificationEvent.ASSIGNED:
        # The channels with only the first one by e-mail: each would write to the same person.
        mails = [each for each in channels if each.kind == ChannelKind.EMAIL]
        channels = [each for each in channels if each not in mails[1:]]
    if not channels:
        return
    values = {"project_id": project_id, "event": event, "run_id": run_id, "alert": alert, "to": to, "by": by}
    notification, is_new = Notification.objects.get_or_create(key=key, defaults=values)
    if is_new:
        Delivery.objects.bulk_create(
            Delivery(notification=notification, channel=channel) for channel in channels
        )
        for channel in channels:
            request_job(Job.Kind.CHANNEL, channel.pk)
