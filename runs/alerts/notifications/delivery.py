"""Deliver what is stored: claimed with a lease, sent at most once, retried for a day while the receiver is away."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from runs.alerts.notifications.messages import NothingToSay, NotificationMessage, compose
from runs.alerts.notifications.sending import Attempt, send_delivery
from runs.db.retry import retry_when_lost
from runs.db.transactions import write_transaction
from runs.models import Delivery, Notification
from runs.models.notification import DeliveryState

FIRST_WAIT, LONGEST_WAIT = 60.0, 3600.0
"""Seconds after the first attempt, and the most between two."""
MOST_CHANNELS = 20
"""Most channels whose delivery is requested at once."""
KEPT_FOR = timedelta(days=90)
"""How long the log keeps a notification."""
LOST = (
    "The worker ended while it sent this, so it may have arrived. It is not sent twice by itself: "
    "look at the receiver, and send it again if it is missing."
)


def wait_seconds(attempts: int) -> float:
    """Return the delay in seconds after `attempts` tries: 1, 2, 4, … 32 minutes, then an hour."""
    return min(FIRST_WAIT * 2.0 ** min(attempts - 1, 10), LONGEST_WAIT)


def due_channels(*, now: datetime) -> list[int]:
    """Return the channels with something to send and no worker that sends it. One query."""
    at_work = Delivery.objects.filter(lease_until__gte=now).values("channel")
    due = Delivery.due(now=now).exclude(channel__in=at_work).order_by("channel")
    return list(due.values_list("channel", flat=True).distinct()[:MOST_CHANNELS])


def deliver_channel(channel_id: int) -> int:
    """Send a channel's due deliveries, oldest first, until one fails; return the number of attempts."""
    attempts = 0
    while delivery := _claim_next(channel_id):
        attempts += 1
        if not _deliver(delivery):
            break
    return attempts


def deliver_due() -> int:
    """Send everything that is due in this process; return the number of attempts."""
    fail_lost(now=timezone.now())
    return sum(map(deliver_channel, due_channels(now=timezone.now())))


def fail_lost(*, now: datetime) -> int:
    """Mark deliveries failed whose worker ended between sending and recording; return their number.

    The token stays, so that a worker that was only slow still records its result.
    """
    lost = Delivery.objects.filter(state=DeliveryState.SENDING, lease_until__lt=now)
    if not lost.exists():
        return 0
    with write_transaction():
        return lost.update(state=DeliveryState.FAILED, finished=now, lease_until=None, response=LOST)


def remove_old(*, now: datetime) -> None:
    """Remove notifications that the log no longer keeps, without those that are still to send."""
    old = Notification.objects.filter(at__lt=now - KEPT_FOR)
    open_states = [DeliveryState.QUEUED, DeliveryState.SENDING]
    still = Delivery.objects.filter(state__in=open_states).values("notification")
    if old.exists():
        with write_transaction():
            old.exclude(pk__in=still).delete()


def _claim_next(channel_id: int) -> Delivery | None:
    """Return the channel's oldest due delivery, claimed; None if there is none or other workers were faster."""
    now = timezone.now()
    due = Delivery.due(now=now).filter(channel=channel_id).order_by("pk")
    for pk in list(due.values_list("pk", flat=True)[:10]):
        if claimed := claim(pk, now=now):
            return claimed
    return None


def claim(delivery_id: int, *, now: datetime) -> Delivery | None:
    """Return a due delivery to the first that asks for it, None to any other."""
    token = uuid.uuid4().hex
    with write_transaction():
        won = Delivery.due(now=now).filter(pk=delivery_id)
        if won.update(token=token, lease_until=now + Delivery.LEASE) != 1:
            return None
    rows = Delivery.objects.select_related("channel", "notification__project", "notification__alert")
    return rows.filter(pk=delivery_id, token=token).first()


def _deliver(delivery: Delivery) -> bool:
    """Attempt a claimed delivery and record what came of it; return whether the channel's next one may follow."""
    try:
        message = _message(delivery.notification)
    except NothingToSay as error:
        _record(delivery, state=DeliveryState.SKIPPED, finished=timezone.now(), response=str(error))
        return True
    if not begin(delivery, now=timezone.now()):
        return True
    attempt = send_delivery(delivery, message)
    delivery.refresh_from_db(fields=["attempts", "first_attempt"])
    _record(delivery, **_result(delivery, attempt, now=timezone.now()))
    return attempt.sent


def _message(notification: Notification) -> NotificationMessage:
    """Return the message, the same in every attempt."""
    message = compose(notification)
    if not notification.content:
        notification.content = message.as_json()
        with write_transaction():
            notification.save(update_fields=["content"])
    return message


def begin(delivery: Delivery, *, now: datetime) -> bool:
    """Store that the message is about to be sent; False if the claim was lost.

    From here on nobody sends it again unless its failure is recorded.
    """
    with write_transaction():
        claimed = Delivery.objects.filter(pk=delivery.pk, token=delivery.token, state=DeliveryState.QUEUED)
        values = {"first_attempt": delivery.first_attempt or now, "lease_until": now + Delivery.LEASE}
        return claimed.update(state=DeliveryState.SENDING, attempts=F("attempts") + 1, **values) == 1


def _result(delivery: Delivery, attempt: Attempt, *, now: datetime) -> dict[str, Any]:
    """Return the columns of an attempt's result."""
    seen = {"status": attempt.status, "response": attempt.response}
    if attempt.sent:
        return {"state": DeliveryState.SENT, "finished": now, **seen}
    began = delivery.first_attempt or now
    if attempt.final or now - began >= Delivery.RETRIED_FOR:
        return {"state": DeliveryState.FAILED, "finished": now, **seen}
    following = now + timedelta(seconds=wait_seconds(delivery.attempts))
    return {"state": DeliveryState.QUEUED, "next_attempt": following, **seen}


def _record(delivery: Delivery, **values: Any) -> bool:
    """Store a result under the claim's token; return False if the claim was lost."""

    def store() -> bool:
        with write_transaction():
            mine = Delivery.objects.filter(pk=delivery.pk, token=delivery.token)
            return mine.update(lease_until=None, **values) == 1

    return retry_when_lost(store)
