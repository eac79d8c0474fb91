"""Deliver stored messages: one worker a channel, at most once, retried for a day while it is away."""

from __future__ import annotations

import json
import smtplib
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import Min, QuerySet
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from evalhub.lib.limits import LONGEST_ERROR
from evalhub.lib.timestamps import format_timestamp
from runs.alerts.notifications.channels import signature_headers
from runs.alerts.notifications.messages import NothingToSay, NotificationMessage, compose
from runs.db.retry import retry_when_lost
from runs.db.transactions import write_transaction
from runs.models import Channel, Delivery, Job, Notification
from runs.models.notification import ChannelKind, DeliveryState, NotificationEvent
from runs.sandbox.outbound import AddressRefused
from runs.sandbox.worker_settings import read_outbound
from runs.workers.jobs import hold_job, put_off

if TYPE_CHECKING:  # httpx takes a tenth of a second
    import httpx


LONGEST_SUBJECT = 200
LONGEST_SLACK_TEXT = 2900
"""Characters; Slack refuses sections of more than 3,000."""


def webhook_body(event: str, at: datetime, message: NotificationMessage) -> bytes:
    """Return the JSON of a webhook: `type`, `timestamp` of the event and `data`."""
    data: dict[str, Any] = {
        **message.data,
        "title": message.title,
        "text": "\n".join(message.lines),
        "url": message.link,
    }
    return _json({"type": event, "timestamp": format_timestamp(at), "data": data})


def slack_body(message: NotificationMessage) -> bytes:
    """Return a message for a Slack incoming webhook: `text` for notifications, `blocks` for the channel.

    Source: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    """
    facts = " · ".join(f"{name}: {value}" for name, value in message.facts)
    text = "\n".join([f"*{_escape_for_slack(message.title)}*", *map(_escape_for_slack, message.lines)])[
        :LONGEST_SLACK_TEXT
    ]
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": text}},
        {"type": "section", "text": {"type": "mrkdwn", "text": f"<{message.link}|Open in evalhub>"}},
        {
            "type": "context",
            "elements": [{"type": "mrkdwn", "text": _escape_for_slack(facts)[:LONGEST_SLACK_TEXT]}],
        },
    ]
    return _json({"text": _escape_for_slack(message.title), "blocks": blocks})


def mail_subject(message: NotificationMessage) -> str:
    """Return the title on one line."""
    return f"[evalhub] {' '.join(message.title.split())}"[:LONGEST_SUBJECT]


def mail_text(message: NotificationMessage) -> str:
    """Return a mail's text."""
    facts = [f"{name}: {value}" for name, value in message.facts]
    return "\n".join([*message.lines, "", message.link, "", *facts, ""])


def _escape_for_slack(text: str) -> str:
    """Return a text in which Slack finds no links and mentions.

    Source: https://docs.slack.dev/messaging/formatting-message-text, Escaping text
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _json(value: Any) -> bytes:
    # Sorted, so that every attempt has the same body whatever order the database returns.
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


SECONDS = 15.0
"""Longest time for one request, from the connection to the end of the answer."""
SHORTEST_SECRET = 8
"""Characters; shorter parts of an address are in ordinary text, too."""


@dataclass(frozen=True)
class Attempt:
    """The result of an attempt."""

    sent: bool
    response: str
    status: int | None = None
    final: bool = False
    """Whether another attempt can't succeed."""


def send_delivery(delivery: Delivery, message: NotificationMessage) -> Attempt:
    """Send a delivery's message to its channel. Raises nothing of the network's."""
    if delivery.channel.kind == ChannelKind.EMAIL:
        return _mail(delivery, message)
    return _post(delivery, message)


def _mail(delivery: Delivery, message: NotificationMessage) -> Attempt:
    if not settings.MAIL_SERVER:
        return Attempt(False, "No mail server is set up. Set EVALHUB_EMAIL_URL on the workers.")
    recipients = list(delivery.channel.recipients)
    if delivery.notification.event == NotificationEvent.ASSIGNED:
        person = delivery.notification.to
        recipients = [person.email] if person and person.email else []
        if not recipients:
            name = person.get_username() if person else "The person"
            sentence = f"{name} has no e-mail address. Set one with 'manage.py create_user {name} --email …'."
            return Attempt(False, sentence, final=True)
    headers = {"Message-ID": f"<{delivery.uid}@evalhub>"}
    mail = EmailMessage(mail_subject(message), mail_text(message), to=recipients, headers=headers)
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        return Attempt(False, _without(str(error), [settings.EMAIL_HOST_PASSWORD]))
    return Attempt(True, f"The mail server accepted it for {', '.join(recipients)}.")


@sensitive_variables()
def _post(delivery: Delivery, message: NotificationMessage) -> Attempt:
    channel = delivery.channel
    headers = {"Content-Type": "application/json", "User-Agent": "evalhub"}
    if channel.kind == ChannelKind.WEBHOOK:
        body = webhook_body(delivery.notification.event, delivery.notification.at, message)
        headers |= signature_headers(channel.secret, delivery.uid, int(time.time()), body)
    else:
        body = slack_body(message)
    attempt = _request(channel, headers, body)
    parts = urlsplit(channel.address)
    hidden = _without(
        attempt.response,
        [channel.address, channel.secret, f"{parts.path}?{parts.query}", parts.query, parts.path],
    )
    return Attempt(attempt.sent, hidden, attempt.status, attempt.final)


@sensitive_variables()
def _request(channel: Channel, headers: dict[str, str], body: bytes) -> Attempt:
    import httpx

    from runs.sandbox.outbound_http import Deadline, DeadlineExceeded, make_client

    try:
        with (
            make_client(read_outbound(), Deadline(SECONDS)) as http,
            http.stream("POST", channel.address, content=body, headers=headers) as answer,
        ):
            # Once there is a status, what goes wrong with the text doesn't change it.
            return _judge_answer(answer, _text(answer))
    except AddressRefused as error:
        return Attempt(False, str(error), final=True)
    except DeadlineExceeded:
        return Attempt(False, f"No answer within {SECONDS:g} s.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Attempt(False, f"Not reachable: {str(error).rstrip('.') or type(error).__name__}.")


def _text(answer: httpx.Response) -> str:
    import httpx

    from runs.sandbox.outbound_http import DeadlineExceeded

    body = bytearray()
    try:
        for chunk in answer.iter_raw():
            body += chunk
            if len(body) > LONGEST_ERROR:
                break
    except (httpx.HTTPError, DeadlineExceeded):
        body += b" (the answer broke off)"
    return bytes(body[:LONGEST_ERROR]).decode("utf-8", "replace").strip()


def _judge_answer(answer: httpx.Response, text: str) -> Attempt:
    if answer.is_redirect:
        where = urlsplit(answer.headers.get("location", "")).hostname
        leads = f" to {where}" if where else ""
        text = f"It redirects{leads}; redirects aren't followed. Enter the address that it leads to."
    return Attempt(answer.is_success, text, answer.status_code)


def _without(text: str, secrets: list[str]) -> str:
    """Return a text for the log: without secrets and NULs."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "…")
    return text.replace("\x00", "�")[:LONGEST_ERROR]


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
    """Attempt a delivery and record the result; return whether the channel's next one may follow."""
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
        hold_job(job)
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
