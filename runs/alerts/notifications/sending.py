"""Send one message to one channel, once."""

from __future__ import annotations

import json
import smtplib
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.views.decorators.debug import sensitive_variables

from evalhub.lib.limits import LONGEST_ERROR
from evalhub.lib.timestamps import moment
from runs.alerts.notifications.messages import NotificationMessage
from runs.alerts.notifications.signing import signature_headers
from runs.models import Channel, Delivery
from runs.models.notification import ChannelKind, NotificationEvent
from runs.sandbox.outbound import AddressRefused
from runs.sandbox.worker_settings import outbound

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
    return _json({"type": event, "timestamp": moment(at), "data": data})


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
    """What came of an attempt."""

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

    from runs.sandbox.outbound_http import Deadline, DeadlineExceeded, client

    try:
        with (
            client(outbound(), Deadline(SECONDS)) as http,
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
