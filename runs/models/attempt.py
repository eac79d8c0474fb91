"""Earlier attempts of trials that ran again in the same run."""

from __future__ import annotations

from django.db import models

from runs.models.trial import Trial


class TrialAttempt(models.Model):
    """What a trial ended with before it was retried or resumed."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    """From 1, in the order of execution."""
    state = models.CharField(max_length=10)
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=20, blank=True)
    worker = models.CharField(max_length=200, blank=True)
    seconds = models.FloatField(null=True)
    exit_code = models.IntegerField(null=True)
    cost_usd = models.FloatField(null=True)
    detail = models.JSONField(default=dict)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["trial", "number"], name="one_attempt_a_number"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.trial}"
