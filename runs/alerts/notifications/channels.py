"""Create, change, test and delete channels, for pages and REST, and sign webhooks.

The audit log names changed fields, never values. A signature proves to the receiver who sent a message and when
(Standard Webhooks, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from evalhub.teams import audit
from evalhub.teams.models import Project
from runs.db.transactions import request_job
from runs.models import Channel, Delivery, Job, Notification
from runs.models.notification import CHOSEN_EVENTS, ChannelKind, DeliveryState, NotificationEvent
from runs.workers import wakeups

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
"""Bytes of a key."""


def new_secret() -> str:
    """Return a random secret of 32 bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def decode_key(secret: str) -> bytes:
    """Return the key of `whsec_` and base64. Raises `ValueError` if it isn't one, or not of 24 to 64 bytes."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if not secret.startswith(PREFIX) or not SHORTEST <= len(key) <= LONGEST:
        raise ValueError("not a key")
    return key


def signature_headers(secret: str, message_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message; `seconds` since 1970 is the time of the attempt.

    The signature is the base64 of HMAC-SHA256 over `id.seconds.body`.
    """
    signed = b".".join((message_id.encode(), str(seconds).encode(), body))
    digest = hmac.new(decode_key(secret), signed, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


MOST_RECIPIENTS = 20
FIELDS = ("name", "recipients", "address", "secret", "events")
"""What can be set; the kind stays."""


class ChannelRefused(Exception):
    """A channel has wrong values; `problems` has a sentence for each field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = dict(problems)


@sensitive_variables()
@transaction.atomic
def create_channel(project: Project, kind: str, values: Mapping[str, Any], *, by: User | None) -> Channel:
    """Store a channel. Raises `ChannelRefused`."""
    channel = Channel(project=project, kind=kind)
    _set(channel, values)
    _store(channel)
    audit.append_event(project, by, "channel.create", channel.name, kind=kind, events=channel.events)
    return channel


@sensitive_variables()
@transaction.atomic
def change_channel(channel: Channel, values: Mapping[str, Any], *, by: User | None) -> Channel:
    """Change the given fields; an empty `address` or `secret` keeps the stored one. Raises `ChannelRefused`."""
    new_values = {name: value for name, value in values.items() if value or name not in ("address", "secret")}
    changed = sorted(name for name, value in new_values.items() if getattr(channel, name) != value)
    _set(channel, new_values)
    _store(channel)
    if changed:
        audit.append_event(channel.project, by, "channel.change", channel.name, changed=changed)
    return channel


@transaction.atomic
def delete_channel(channel: Channel, *, by: User | None) -> None:
    """Delete a channel with its log; what is queued for it is not sent."""
    audit.append_event(channel.project, by, "channel.delete", channel.name)
    channel.delete()


def send_test(channel: Channel, *, by: User | None) -> Delivery:
    """Store a test message for one channel and wake a worker."""
    event = NotificationEvent.TEST
    with transaction.atomic():
        notification = Notification.objects.create(
            project=channel.project, event=event, key=f"test:{channel.pk}:{uuid.uuid4().hex}", by=by
        )
        delivery = Delivery.objects.create(notification=notification, channel=channel)
        job = request_job(Job.Kind.CHANNEL, channel.pk)
    wakeups.wake_for_job(job)
    return delivery


def send_again(delivery: Delivery, *, by: User | None) -> bool:
    """Queue a failed delivery for another day of attempts; False if it has not failed."""
    with transaction.atomic():
        failed = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.FAILED)
        again = {"next_attempt": timezone.now(), "first_attempt": None, "finished": None, "attempts": 0}
        if failed.update(state=DeliveryState.QUEUED, **again) != 1:
            return False
        project = delivery.channel.project
        audit.append_event(project, by, "channel.send-again", delivery.channel.name, message=delivery.uid)
        job = request_job(Job.Kind.CHANNEL, delivery.channel_id)
    wakeups.wake_for_job(job)
    return True


@sensitive_variables()
def _set(channel: Channel, values: Mapping[str, Any]) -> None:
    for name in FIELDS:
        if name in values:
            setattr(channel, name, values[name])
    # Fields of another kind would be stored and never used.
    if channel.kind == ChannelKind.EMAIL:
        channel.address = channel.secret = ""
    else:
        channel.recipients = []
    if channel.kind == ChannelKind.SLACK:
        channel.secret = ""
    if problems := channel_problems(channel):
        raise ChannelRefused(problems)


def _store(channel: Channel) -> None:
    try:
        with transaction.atomic():
            channel.save()
    except IntegrityError as error:
        sentence = f"There is already a channel “{channel.name}”. Choose another name."
        raise ChannelRefused({"name": sentence}) from error


@sensitive_variables()
def channel_problems(channel: Channel) -> dict[str, str]:
    """Return a sentence for each wrong field; it never repeats an address or a secret."""
    problems = {"name": _name(channel.name), "events": _events(channel.events)}
    if channel.kind == ChannelKind.EMAIL:
        problems["recipients"] = _recipients(channel)
    else:
        problems["address"] = _address(channel.address)
    if channel.kind == ChannelKind.WEBHOOK:
        problems["secret"] = _secret(channel.secret)
    return {name: sentence for name, sentence in problems.items() if sentence}


def _name(name: str) -> str:
    return "" if name.strip() and len(name) <= 80 else "Enter a name of at most 80 characters."


def _events(events: Sequence[str]) -> str:
    known = {event.value for event in CHOSEN_EVENTS}
    if unknown := [event for event in events if event not in known]:
        return f"“{unknown[0]}” is not an event. Choose from: {', '.join(sorted(known))}."
    return "" if events else "Choose at least one event."


def _recipients(channel: Channel) -> str:
    recipients = channel.recipients
    if len(recipients) > MOST_RECIPIENTS:
        return (
            f"There are {len(recipients)} addresses. Enter at most {MOST_RECIPIENTS}, or use a mailing list."
        )
    for recipient in recipients:
        try:
            validate_email(recipient)
        except ValidationError:
            return f"“{recipient[:100]}” is not an e-mail address. Separate addresses by commas."
    if not recipients and set(channel.events) != {NotificationEvent.ASSIGNED.value}:
        return "Enter at least one e-mail address. Only assignments go to the assigned person instead."
    return ""


def _address(address: str) -> str:
    fix = "Enter a full address that starts with https:// or http://."
    if len(address) > 500:
        return "The address has more than 500 characters. Enter a shorter one."
    if any(sign <= " " or sign == "\x7f" for sign in address):
        return f"The address contains spaces or control characters. {fix}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return fix
    if "@" in parts.netloc:
        return "The address contains a user name. Leave it out: evalhub signs its messages instead."
    return ""


def _secret(secret: str) -> str:
    try:
        decode_key(secret)
    except ValueError:
        return (
            "Enter whsec_ and 24 to 64 random bytes in base64; this prints one: "
            'echo "whsec_$(openssl rand -base64 32)"'
        )
    return ""
