"""Results of target checks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from runs.models.labels import LabelsWithin
from runs.models.target import Target


class TargetCheck(models.Model):
    """A request to check whether a target works on the workers, and the result.

    requested ──a worker takes it──▶ taken (`worker`) ──▶ answered (`at`)
    """

    LOST_AFTER = timedelta(seconds=10)
    """A request that no worker has taken by then is sent again."""
    PATIENCE = timedelta(minutes=5)
    """A request without a result by then has expired."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="checks")
    asked = models.DateTimeField(default=timezone.now)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(null=True)
    worker = models.CharField(max_length=200, blank=True)
    available = models.BooleanField(null=True)
    """None until it is answered, and if nothing could be tried."""
    sentence = models.TextField(blank=True)
    """What to do if it is not available; secrets are masked."""
    version = models.CharField(max_length=200, blank=True)
    """The version of the provider's program."""

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["asked"], name="check_unanswered", condition=models.Q(at=None))]

    def __str__(self) -> str:
        return f"check of {self.target}"

    def is_waiting(self, *, now: datetime) -> bool:
        """Return whether a result may still arrive."""
        return self.at is None and now - self.asked < self.PATIENCE

    @classmethod
    def take(cls, check_id: int, worker: str, labels: Sequence[str] = ()) -> TargetCheck | None:
        """Return the request to the first worker with the target's labels that takes it, None to any other."""
        mine = Target.objects.filter(LabelsWithin("labels", labels), pk=models.OuterRef("target"))
        untaken = cls.objects.filter(models.Exists(mine), pk=check_id, worker="", at=None)
        taken = untaken.update(worker=worker)
        return cls.objects.select_related("target__project").get(pk=check_id) if taken else None

    @classmethod
    def untaken(cls, *, now: datetime) -> models.QuerySet[TargetCheck]:
        """Return requests that no worker has taken for a while and that have not expired."""
        return cls.objects.filter(
            at=None, worker="", asked__lt=now - cls.LOST_AFTER, asked__gt=now - cls.PATIENCE
        )
