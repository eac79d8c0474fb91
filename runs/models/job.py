"""Work that a worker does beside trials: who works on what, until it is done."""

from __future__ import annotations

from django.db import models

from runs.models.run import Launch


class Job(models.Model):
    """Work for one worker at a time. What was asked, and what came of it, is in its subject's own table.

    waiting ──taken──▶ at work (`token`, `lease_until`) ──done──▶ deleted
       ▲                  └── put off until `due` ──┐
       └─────────────────────────────────────────┘
    """

    class Kind(models.TextChoices):
        """What a job's `subject` is a key of."""

        PROOF = "proof"
        """`SuiteProof`"""
        REASSESSMENT = "reassessment"
        CHECK = "check"
        """`TargetCheck`"""
        TRY = "try"
        """`TargetTry`"""
        BATCH = "batch"
        """`Run` whose batch a provider has."""
        CHANNEL = "channel"
        """`Channel` with messages to send."""

    kind = models.CharField(max_length=12, choices=Kind.choices)
    subject = models.PositiveBigIntegerField()
    launch = models.ForeignKey(Launch, on_delete=models.CASCADE, null=True, related_name="+")
    """A launch that one process may hold, whose jobs no other takes then."""
    labels = models.JSONField(default=list)
    """Only a worker that has all of them takes it."""
    due = models.FloatField(default=0.0)
    """When it may be taken, in the database's seconds."""
    expires = models.DateTimeField(null=True)
    """When a job that no worker has taken is given up."""
    attempts = models.PositiveIntegerField(default=0)
    """How often it was taken."""
    worker = models.CharField(max_length=200, blank=True)
    token = models.CharField(max_length=32, blank=True)
    """Empty while nobody works on it."""
    lease_until = models.FloatField(default=0.0)
    """Until when its worker has it, in the database's seconds; the worker renews it."""

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["kind", "subject"], name="one_job_a_subject")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
