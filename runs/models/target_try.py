"""Requests to try a target with one prompt; no trial is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from runs.models.labels import LabelsWithin


class TargetTry(models.Model):
    """A prompt for a definition, saved or not, and what came back; deleted after a while.

    requested ──a worker takes it──▶ taken (`worker`) ──▶ answered (`result`)
    """

    LIFETIME = timedelta(hours=1)
    LOST_AFTER = timedelta(seconds=10)
    """A request that no worker has taken by then is sent again."""
    PATIENCE = timedelta(minutes=5)
    """A request without a result by then has expired."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="target_tries")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=120)
    definition = models.JSONField()
    base_folder = models.CharField(max_length=500, blank=True)
    labels = models.JSONField(default=list)
    prompt = models.TextField()
    model = models.CharField(max_length=200, blank=True)
    created = models.DateTimeField(default=timezone.now)
    worker = models.CharField(max_length=200, blank=True)
    result = models.JSONField(null=True)
    """What came back; see `runs.engine.trying`."""

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["created"], name="try_by_age")]

    def __str__(self) -> str:
        return f"try of {self.name}"

    def is_waiting(self, *, now: datetime) -> bool:
        """Return whether a result may still arrive."""
        return self.result is None and now - self.created < self.PATIENCE

    @classmethod
    def take(cls, try_id: int, worker: str, labels: Sequence[str]) -> TargetTry | None:
        """Return the request to the first worker with the labels that takes it, None to any other."""
        mine = cls.objects.filter(LabelsWithin("labels", labels), pk=try_id, worker="", result__isnull=True)
        taken = mine.update(worker=worker)
        return cls.objects.select_related("project").get(pk=try_id) if taken else None

    @classmethod
    def untaken(cls, *, now: datetime) -> models.QuerySet[TargetTry]:
        """Return requests that no worker has taken for a while and that have not expired."""
        since = now - cls.PATIENCE
        return cls.objects.filter(
            worker="", result__isnull=True, created__lt=now - cls.LOST_AFTER, created__gt=since
        )

    @classmethod
    def remove_expired(cls, *, now: datetime) -> None:
        """Delete expired requests with their results."""
        cls.objects.filter(created__lt=now - cls.LIFETIME).delete()
