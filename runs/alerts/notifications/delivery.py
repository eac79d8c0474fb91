"""Deliver what is stored: by one worker a channel, sent at most once, retried for a day while the receiver is away."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min, QuerySet
from django.utils import timezone

from runs.alerts.notifications.messages import NothingToSay, NotificationMessage, compose
from runs.alerts.notifications.sending import Attempt, send_delivery
from runs.db.retry import retry_when_lost
from runs.db.transactions import write_transaction
from runs.models import Delivery, Job, Notification
from runs.models.notification import DeliveryState
from runs.workers.jobs import hold, put_off

FIRST_WAIT, LONGEST_WAIT = 60.0, 3600.0
"""Seconds after the first attempt, and the most between two."""
OPEN = (DeliveryState.QUEUED, DeliveryState.SENDING)
KEPT_FOR = timedelta(days=90)
"""How long the log keeps a notification."""
LOST = (
    "The worker ended while it sent this, so it may have arrived. It is not sent twice by itself: "
    "look at the receiver, and send it again if it is missing."
)


def wait_seconds(attempts: int) -> float:
    """Return the delay in seconds after `attempts` tries: 1, 2, 4, … 32 minutes, then an hour."""
    return min(FIRST_WAIT * 2.0 ** min(attempts - 1, 10), LONGEST_WAIT)


def deliver_channel(job: Job) -> None:
    """Send a channel's due deliveries, oldest first, until one fails; what waits for a later attempt puts the job off.

    A delivery that an earlier worker was sending when it was lost may have arrived, so it fails and is not sent again.
    """
    sending = Delivery.objects.filter(channel=job.subject, state=DeliveryState.SENDING)
    lost = {"state": DeliveryState.FAILED, "finished": timezone.now(), "response": LOST}
    retry_when_lost(lambda: _update_held(job, sending, **lost))
    while (delivery := _next_due(job.subject)) and _deliver(job, delivery):
        pass
    queued = Delivery.objects.filter(channel=job.subject, state=DeliveryState.QUEUED)
    if (following := queued.aggregate(at=Min("next_attempt"))["at"]) is not None:
        put_off(job, max(0.0, (following - timezone.now()).total_seconds()))


def remove_old(*, now: datetime) -> None:
    """Remove notifications that the log no longer keeps, without those that are still to send."""
    old = Notification.objects.filter(at__lt=now - KEPT_FOR)
    still = Delivery.objects.filter(state__in=OPEN).values("notification")
    if old.exists():
        with write_transaction():
            old.exclude(pk__in=still).delete()


def _next_due(channel_id: int) -> Delivery | None:
    rows = Delivery.objects.select_related("channel", "notification__project", "notification__alert")
    due = rows.filter(channel=channel_id, state=DeliveryState.QUEUED, next_attempt__lte=timezone.now())
    return due.order_by("pk").first()


def _deliver(job: Job, delivery: Delivery) -> bool:
    """Attempt a delivery and record what came of it; return whether the channel's next one may follow."""
    queued = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.QUEUED)
    try:
        message = _message(delivery.notification)
    except NothingToSay as error:
        skipped = {"state": DeliveryState.SKIPPED, "finished": timezone.now(), "response": str(error)}
        retry_when_lost(lambda: _update_held(job, queued, **skipped))
        return True
    began = delivery.first_attempt or timezone.now()
    delivery.attempts += 1
    # From here on nobody sends it again unless its failure is recorded.
    begun = {"state": DeliveryState.SENDING, "first_attempt": began, "attempts": delivery.attempts}
    if not _update_held(job, queued, **begun):
        return True
    attempt = send_delivery(delivery, message)
    # A worker that was only slow still records what became of its attempt, unless somebody queued it again.
    same = {"pk": delivery.pk, "attempts": delivery.attempts, "first_attempt": began}
    mine = Delivery.objects.filter(state__in=[DeliveryState.SENDING, DeliveryState.FAILED], **same)
    result = _result(began, delivery.attempts, attempt, now=timezone.now())
    retry_when_lost(lambda: _update(mine, **result))
    return attempt.sent


def _update_held(job: Job, rows: QuerySet[Delivery], **values: Any) -> int:
    """Change deliveries while the job is ours; return how many. Raises `JobLost`."""
    with write_transaction():
        hold(job)
        return rows.update(**values)


def _update(rows: QuerySet[Delivery], **values: Any) -> int:
    with write_transaction():
        return rows.update(**values)


def _message(notification: Notification) -> NotificationMessage:
    """Return the message, the same in every attempt."""
    message = compose(notification)
    if not notification.content:
        notification.content = message.as_json()
        with write_transaction():
            notification.save(update_fields=["content"])
    return message


def _result(began: datetime, attempts: int, attempt: Attempt, *, now: datetime) -> dict[str, Any]:
    """Return the columns of an attempt's result."""
    seen = {"status": attempt.status, "response": attempt.response}
    if attempt.sent:
        return {"state": DeliveryState.SENT, "finished": now, **seen}
    if attempt.final or now - began >= Delivery.RETRIED_FOR:
        return {"state": DeliveryState.FAILED, "finished": now, **seen}
    following = now + timedelta(seconds=wait_seconds(attempts))
    return {"state": DeliveryState.QUEUED, "next_attempt": following, **seen}
