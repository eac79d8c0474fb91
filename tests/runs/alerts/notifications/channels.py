"""Channels for tests of notifications, and runs that there is something to say of."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from django.utils import timezone

from evalhub.teams.models import Project
from runs.alerts.notifications.channels import create_channel
from runs.models import Channel, Delivery, Job, Run
from tests.builders import make_compared, make_suite

SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
KEYS = tuple(f"task-{number:02d}" for number in range(10))


def webhook(project: Project, address: str, *events: str, name: str = "hook") -> Channel:
    values = {"name": name, "address": address, "secret": SECRET, "events": list(events) or ["regression"]}
    return create_channel(project, "webhook", values, by=None)


def slack(project: Project, address: str, *events: str) -> Channel:
    values = {"name": "slack", "address": address, "events": list(events) or ["regression"]}
    return create_channel(project, "slack", values, by=None)


def mail(project: Project, *events: str, name: str = "mail", to: str = "team@example.org") -> Channel:
    values = {"name": name, "recipients": [to], "events": list(events) or ["regression"]}
    return create_channel(project, "email", values, by=None)


def regressed(project: Project, **changes: Any) -> Run:
    """Return a run whose every scenario failed, after one that passed, in a project that wants to hear of it at once."""
    project.notify_when = "at_once"
    project.save()
    version = make_suite(project, KEYS, name="Basics")
    make_compared(version, dict.fromkeys(KEYS, "pass"), trials=3)
    return make_compared(version, dict.fromkeys(KEYS, "fail"), trials=3, **changes)


def only_delivery() -> Delivery:
    return Delivery.objects.get()


def make_due(at: datetime | None = None) -> None:
    """Move every next attempt to now, as if the time until then were over."""
    Job.objects.filter(kind="channel").update(due=0.0)
    Delivery.objects.update(next_attempt=at or timezone.now())
