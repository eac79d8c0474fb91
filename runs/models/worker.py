"""Worker processes, and the check of their leases."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone


class Worker(models.Model):
    """A worker process, as of its last heartbeat."""

    HEARD_WITHIN = timedelta(minutes=1)
    """A worker silent for longer counts as offline."""

    name = models.CharField(max_length=200, unique=True)
    seen = models.DateTimeField(default=timezone.now)
    lanes = models.PositiveIntegerField(default=0)
    """How many of its lanes are busy."""
    capacity = models.PositiveIntegerField(default=1, db_default=1)
    """How many lanes it has, busy or free."""
    sandbox = models.CharField(max_length=40, blank=True)
    version = models.CharField(max_length=40, blank=True)
    problem = models.CharField(max_length=500, blank=True, default="", db_default="")
    """Why it starts no trials, such as a full disk; empty if nothing is wrong."""
    free_bytes = models.BigIntegerField(null=True)
    """Free bytes on the fullest disk that its trials are written to."""
    store = models.CharField(max_length=100, blank=True, default="", db_default="")
    """The id of its file store; empty while it can't read the store."""

    labels = models.JSONField(default=list)
    """What it has, sorted (`EVALHUB_WORKER_LABELS`)."""
    has_judge = models.BooleanField(default=False, db_default=False)
    """Whether it has a judge of its own (`LLM_TOOL_TEST_JUDGE`)."""

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def heard(cls, *, now: datetime) -> models.QuerySet[Worker]:
        """Return the workers that are online."""
        return cls.objects.filter(seen__gt=now - cls.HEARD_WITHIN)


class LeaseCheck(models.Model):
    """The one row that says when leases were checked, in the database's seconds since 1970."""

    checked = models.FloatField()
    resumed = models.FloatField(default=0.0)
    """When a check followed a gap in which nobody could renew or check leases."""

    def __str__(self) -> str:
        return f"checked at {self.checked:.0f}"
