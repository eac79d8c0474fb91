"""Batches submitted to a provider, and their answers."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from runs.models.run import Run
from runs.models.trial import Trial


class BatchState(models.TextChoices):
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    ENDED = "ended"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ProviderBatch(models.Model):
    """The batch of a run; one with a known id is never submitted again. A `Job` says who asks the provider, and when.

    submitting ──id──▶ submitted ──results──▶ ended
        │                  ├── no results ──▶ failed
        │                  └── the run is over ──▶ cancelled
        └── refused, or its worker was lost ──▶ failed
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="batches")
    external_id = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=20)
    token = models.CharField(max_length=32, blank=True)
    """Token of the preparation that submits it."""
    detail = models.JSONField(default=dict)
    """`reason`: why the batch failed, wholly or in part."""
    submitted = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run"], name="one_batch_a_run")]

    def __str__(self) -> str:
        return f"batch {self.external_id or self.pk}"


class BatchAnswer(models.Model):
    """A batch's answer for one trial, until the trial runs: a recording, masked like everything stored."""

    trial = models.OneToOneField(
        Trial, on_delete=models.CASCADE, primary_key=True, related_name="batch_answer"
    )
    data = models.BinaryField(default=b"")
    """The recording; empty if there is none."""
    error = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"answer of {self.trial_id}"
