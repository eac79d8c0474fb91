"""Review of judges by people: calibrations, overruled scores, disagreements."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from runs.models.run import Run
from runs.models.trial import Trial


class DiagnosisReview(models.Model):
    """Whether a pattern that was diagnosed in a run is right, by a person."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="diagnosis_reviews", db_index=False)
    pattern = models.CharField(max_length=60)
    is_right = models.BooleanField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "pattern"], name="one_review_a_finding")]

    def __str__(self) -> str:
        return f"{self.pattern} of {self.run}"


class JudgeCalibration(models.Model):
    """What the labels say of a judge version; rewritten with each review of a verdict."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="judge_calibrations")
    model = models.CharField(max_length=200, blank=True)
    rubric = models.CharField(max_length=12, blank=True)
    passing = models.PositiveIntegerField(default=0)
    failing = models.PositiveIntegerField(default=0)
    """Judgings by the person's answer."""
    lower = models.FloatField(default=0.0)
    """The lower of the lower bounds of its true positive and true negative rates."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "model", "rubric"], name="one_calibration_a_version")
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.rubric}"

    @staticmethod
    def calibrated(project: Project) -> models.Q:
        """Return the condition on rows that they are calibrated by the project's thresholds."""
        labels, rate = project.judge_labels, project.judge_rate
        return models.Q(project=project, passing__gte=labels, failing__gte=labels, lower__gte=rate)


class Overrule(models.Model):
    """A score that a person replaced, with the original; undone by putting the original back."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="overrules")
    layer = models.CharField(max_length=12)
    name = models.CharField(max_length=200)
    nth = models.PositiveIntegerField(default=0)
    """Which of the layer's scores with this name, from 0."""
    criterion = models.CharField(max_length=200, blank=True, default="", db_default="")
    """A statement of a checklist, whose score it changes; empty for the score itself."""
    passed = models.BooleanField(null=True)
    """The new verdict; None for a number that only informs."""
    value = models.FloatField(null=True)
    """The new number; None for the original one."""
    original = models.JSONField()
    reason = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)
    undone_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    undone = models.DateTimeField(null=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "layer", "name", "nth", "criterion"],
                name="one_overrule_a_score",
                condition=models.Q(undone=None),
            )
        ]

    def __str__(self) -> str:
        return f"overrule {self.pk}"

    @property
    def given(self) -> str:
        """Return what the person decided, in words."""
        return _given_answer(self.passed, self.value, is_check=bool(self.criterion))

    @property
    def before(self) -> str:
        """Return the original decision, in words."""
        if self.original.get("error"):
            return "error"
        value = None if self.value is None and not self.criterion else self.original.get("value")
        return _given_answer(self.original.get("passed"), value, is_check=bool(self.criterion))


def _given_answer(passed: bool | None, value: float | None, *, is_check: bool) -> str:
    if is_check:
        return "yes" if passed else "no"
    number = "" if value is None else f"{value:.2f}"
    verdict = "" if passed is None else "passed" if passed else "failed"
    return ", ".join(filter(None, (number, verdict))) or "no score"


class Right(models.TextChoices):
    """Who was right where judge and gates disagree."""

    GATE_WEAK = "gate_weak", "Gate too weak"
    JUDGE_FOOLED = "judge_fooled", "Judge fooled"
    BOTH_FINE = "both_fine", "Both fine"


class Resolution(models.Model):
    """A person's decision on a trial in which judge and gates disagree."""

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, related_name="resolution")
    right = models.CharField(max_length=12, choices=Right.choices)
    note = models.TextField(blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.right} in {self.trial_id}"
