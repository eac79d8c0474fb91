"""Requests to grade that need a worker."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project


class GradeRequest(models.Model):
    """Evidence to grade with commands, and the result; deleted after a while."""

    LIFETIME = timedelta(hours=1)
    LOST_AFTER = timedelta(seconds=10)
    """A request without a result by then is sent to workers again."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="grade_requests")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    request = models.JSONField()
    """`runs.execution.grading.Grading` as JSON."""
    started = models.DateTimeField(null=True)
    result = models.JSONField(null=True)
    """The graded trial, or an error with its `status`."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["created"], name="grade_by_age")]

    def __str__(self) -> str:
        return f"grading {self.pk}"

    @classmethod
    def claim(cls, request_id: int, *, now: datetime) -> GradeRequest | None:
        """Return the request to the first worker that claims it, None to any other."""
        taken = cls.objects.filter(pk=request_id, started=None).update(started=now)
        return cls.objects.filter(pk=request_id).first() if taken else None

    def finish(self, result: dict[str, Any]) -> None:
        """Store the result."""
        self.result = result
        self.save(update_fields=["result"])

    @classmethod
    def unanswered(cls, *, now: datetime) -> models.QuerySet[GradeRequest]:
        """Return the requests that no worker has taken for a while."""
        return cls.objects.filter(started=None, created__lt=now - cls.LOST_AFTER)

    @classmethod
    def remove_expired(cls, *, now: datetime) -> None:
        """Delete expired requests with their results."""
        cls.objects.filter(created__lt=now - cls.LIFETIME).delete()
