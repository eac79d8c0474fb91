"""Requests to grade that need a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project


class GradeRequest(models.Model):
    """Evidence to grade with commands, and the result; deleted after a while."""

    LIFETIME = timedelta(hours=1)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="grade_requests")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    request = models.JSONField()
    """`runs.engine.grading.Grading` as JSON."""
    result = models.JSONField(null=True)
    """The graded trial, or an error with its `status`."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["created"], name="grade_by_age")]

    def __str__(self) -> str:
        return f"grading {self.pk}"

    def finish(self, result: dict[str, Any]) -> None:
        """Store the result, unless it has one because its worker was thought lost."""
        GradeRequest.objects.filter(pk=self.pk, result__isnull=True).update(result=result)

    @staticmethod
    def refusal(
        sentence: str, id: str, problems: Sequence[Mapping[str, object]] = ()
    ) -> dict[str, dict[str, object]]:
        """Return the result of a request that is not graded."""
        return {"refused": {"detail": sentence, "id": id, "problems": list(problems)}}
