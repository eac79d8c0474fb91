"""Channels that a project notifies, events to notify of, and their deliveries."""

from __future__ import annotations

import uuid
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from runs.models.comparison import Alert
from runs.models.run import Run


class ChannelKind(models.TextChoices):
    """How a channel is reached."""

    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack"


class NotificationEvent(models.TextChoices):
    """What a message is about."""

    REGRESSION = "regression", "Regression"
    AFTER_CHANGE = "after_change", "Worse after a change of guidance or model"
    RUN_FAILED = "run_failed", "Run failed"
    ASSIGNED = "assigned", "Alert assigned"
    TEST = "test", "Test"


CHOSEN_EVENTS = [event for event in NotificationEvent if event is not NotificationEvent.TEST]
"""The events that a channel can choose; a test goes to the channel that it tests."""


class Channel(models.Model):
    """Where a project's messages go. `address` and `secret` are write-only: no page or log shows them."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="channels")
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=10, choices=ChannelKind.choices)
    recipients = models.JSONField(default=list)
    """E-mail addresses; empty for other kinds."""
    address = models.CharField(max_length=500, blank=True)
    """The URL of a webhook or of Slack, which may contain a token; empty for e-mail."""
    secret = models.CharField(max_length=200, blank=True)
    """The key that signs a webhook's messages (`runs.alerts.notifications.channels`); empty for other kinds."""
    events = models.JSONField(default=list)
    """Values of `NotificationEvent`."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_channel_a_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def destination(self) -> str:
        """What may be shown of where it leads: the recipients, or the scheme and host of its URL."""
        if self.kind == ChannelKind.EMAIL:
            return ", ".join(self.recipients)
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"

    @property
    def event_labels(self) -> list[str]:
        """The labels of the events that it chose."""
        return [event.label for event in CHOSEN_EVENTS if event in self.events]


class Notification(models.Model):
    """One event to notify of, stored in the transaction of the event itself."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="notifications")
    event = models.CharField(max_length=12, choices=NotificationEvent.choices)
    key = models.CharField(max_length=120, unique=True)
    """Names the event, so that it is stored at most once."""
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="+")
    alert = models.ForeignKey(Alert, on_delete=models.SET_NULL, null=True, related_name="+")
    to = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    """Whom an alert was assigned to."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    content = models.JSONField(default=dict)
    """`runs.alerts.notifications.messages.NotificationMessage` as JSON, from the first attempt on."""
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.key


class DeliveryState(models.TextChoices):
    """How far a delivery is."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"


def new_uid() -> str:
    """Return a new id of a delivery."""
    return f"msg_{uuid.uuid4().hex}"


class Delivery(models.Model):
    """One event for one channel, sent by the worker that has the channel's `Job`.

    queued ──begin──▶ sending ──2xx──▶ sent
      ▲  └── its reason is gone ──▶ skipped │
      └── no success, within 24 h ──────────┼── after 24 h, or an address that is refused ──▶ failed
                                            └── its worker ended ──▶ failed (never resent automatically)
    """

    RETRIED_FOR = timedelta(hours=24)
    """An attempt that fails this long after the first one is the last."""

    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    uid = models.CharField(max_length=40, default=new_uid, unique=True)
    """The same in every attempt, so that a receiver can drop a repetition."""
    state = models.CharField(max_length=8, choices=DeliveryState.choices, default=DeliveryState.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    """How often it was sent: only the latest attempt may store its result."""
    first_attempt = models.DateTimeField(null=True)
    next_attempt = models.DateTimeField(default=timezone.now)
    finished = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(null=True)
    """HTTP status of the last attempt; None for e-mail and where nothing answered."""
    response = models.TextField(blank=True)
    """The beginning of the last answer, or why there was none, without the channel's address and secret."""

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["notification", "channel"], name="one_delivery_a_channel")
        ]
        indexes = [
            models.Index(
                fields=["next_attempt"],
                name="delivery_open",
                condition=models.Q(state__in=["queued", "sending"]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.notification} to {self.channel}"

    @property
    def is_open(self) -> bool:
        """Whether it may still be sent."""
        return self.state in (DeliveryState.QUEUED, DeliveryState.SENDING)
