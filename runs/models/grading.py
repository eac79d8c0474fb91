"""Requests to grade that need a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """`runs.engine.grading.Grading` as JSON."""
    started = models.DateTimeField(null=True)
    token = models.CharField(max_length=32, blank=True, default="", db_default="")
    lease_until = models.FloatField(default=0.0, db_default=0.0)
    """Unix time until which its worker has it; the worker renews it."""
    result = models.JSONField(null=True)
    """The graded trial, or an error with its `status`."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["created"], name="grade_by_age")]

    def __str__(self) -> str:
        return f"grading {self.pk}"

    @classmethod
    def claim(cls, request_id: int, *, now: datetime, token: str, lease_until: object) -> GradeRequest | None:
        """Return the request to the first worker that claims it, None to any other."""
        unclaimed = cls.objects.filter(pk=request_id, started=None)
        taken = unclaimed.update(started=now, token=token, lease_until=lease_until)
        return cls.objects.filter(pk=request_id).first() if taken else None

    def finish(self, result: dict[str, Any]) -> None:
        """Store the result, unless its worker was thought lost and it has another."""
        GradeRequest.objects.filter(pk=self.pk, result__isnull=True).update(result=result)

    @staticmethod
    def refusal(
        sentence: str, id: str, problems: Sequence[Mapping[str, object]] = ()
    ) -> dict[str, dict[str, object]]:
        """Return the result of a request that is not graded."""
        return {"refused": {"detail": sentence, "id": id, "problems": list(problems)}}

    @classmethod
    def unanswered(cls, *, now: datetime) -> models.QuerySet[GradeRequest]:
        """Return the requests that no worker has taken for a while."""
        return cls.objects.filter(started=None, created__lt=now - cls.LOST_AFTER)

    @classmethod
    def remove_expired(cls, *, now: datetime) -> None:
        """Delete expired requests with their results."""
        cls.objects.filter(created__lt=now - cls.LIFETIME).delete()
