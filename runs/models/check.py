"""Whether a target can work, as a worker found."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from runs.models.target import Target


class TargetCheck(models.Model):
    """A question to the workers whether a target can work there, and what one of them found.

    asked ──a worker takes it──▶ taken (`worker`) ──▶ answered (`at`)
    """

    LOST_AFTER = timedelta(seconds=10)
    """A question that no worker took by then is sent again."""
    PATIENCE = timedelta(minutes=5)
    """A question without an answer by then is given up."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="checks")
    asked = models.DateTimeField(default=timezone.now)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(null=True)
    worker = models.CharField(max_length=200, blank=True)
    available = models.BooleanField(null=True)
    sentence = models.TextField(blank=True)
    """What to do where it is not available; secrets are masked."""
    version = models.CharField(max_length=200, blank=True)
    """The provider program's own."""

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["asked"], name="check_unanswered", condition=models.Q(at=None))]

    def __str__(self) -> str:
        return f"check of {self.target}"

    def is_waiting(self, *, now: datetime) -> bool:
        """Tell whether an answer may still come."""
        return self.at is None and now - self.asked < self.PATIENCE

    @classmethod
    def take(cls, check_id: int, worker: str) -> TargetCheck | None:
        """Return the question to the first worker that asks for it, None to any other."""
        taken = cls.objects.filter(pk=check_id, worker="", at=None).update(worker=worker)
        return cls.objects.select_related("target__project").get(pk=check_id) if taken else None

    @classmethod
    def untaken(cls, *, now: datetime) -> models.QuerySet[TargetCheck]:
        """Return the questions that no worker has taken for a while and that somebody may still wait for."""
        return cls.objects.filter(
            at=None, worker="", asked__lt=now - cls.LOST_AFTER, asked__gt=now - cls.PATIENCE
        )
