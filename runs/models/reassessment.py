"""Judging or grading stored trials again, and its results until they are adopted."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from evaluators.grading.judges.rubric import RubricCriteria
from runs.models.judging import JudgingRecord
from runs.models.run import Run
from runs.models.trial import Trial


class Reassessment(models.Model):
    """A request to judge or grade a run's stored trials again.

    requested ──a worker does its `Job`──▶ finished ──▶ adopted
    """

    PATIENCE = timedelta(hours=6)

    class Kind(models.TextChoices):
        JUDGE = "judge", "Judge again"
        GRADE = "grade", "Grade again"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="reassessments")
    kind = models.CharField(max_length=5, choices=Kind.choices)
    judge_model = models.CharField(max_length=200, blank=True)
    """A target or model; empty for the run's judge."""
    judge_sha256 = models.CharField(max_length=64, blank=True, default="", db_default="")
    """The hash of the chosen judge's definition; empty for a model, and for the run's judge."""
    rubric = models.JSONField(null=True)
    """`evaluators.grading.judges.rubric.RubricCriteria` as JSON; None for each scenario's own."""
    max_usd = models.FloatField(null=True)
    cost_usd = models.FloatField(default=0.0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)
    finished = models.DateTimeField(null=True)
    error = models.TextField(blank=True)
    """Why it ended early; empty if every trial was assessed."""
    adopted = models.DateTimeField(null=True)
    adopted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["created"], name="reassessment_unfinished", condition=models.Q(finished=None)
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display().lower()} of run {self.run_id}"

    @property
    def rubric_hash(self) -> str:
        """Return the hash of the chosen rubric; empty for each scenario's own."""
        return RubricCriteria.model_validate(self.rubric).short_hash if self.rubric else ""

    @classmethod
    def pending(cls, *, now: datetime) -> models.QuerySet[Reassessment]:
        """Return requests that have neither ended nor expired."""
        return cls.objects.filter(finished=None, created__gt=now - cls.PATIENCE)


class ReassessedTrial(models.Model):
    """The new scores of one trial, beside its stored ones."""

    # `one_reassessment_a_trial` begins with it.
    reassessment = models.ForeignKey(
        Reassessment, on_delete=models.CASCADE, related_name="trials", db_index=False
    )
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="reassessed")
    scores = models.JSONField(default=list)
    """Every layer's scores with the new ones in place."""
    graded_by = models.ForeignKey(
        "scenarios.ScenarioVersion", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """The version whose gates graded it again; None for one that was judged again."""
    outcome = models.CharField(max_length=5, blank=True)
    note = models.TextField(blank=True)
    """What could not be assessed, and why."""
    judgings = models.ManyToManyField(JudgingRecord, related_name="+")
    """The calls made for it; they don't count before they are adopted."""

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["reassessment", "trial"], name="one_reassessment_a_trial")
        ]

    def __str__(self) -> str:
        return f"trial {self.trial_id} in {self.reassessment}"
