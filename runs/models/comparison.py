"""Baselines, changes from them, and alerts to triage."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from evaluators.regression import ChangeVerdict
from runs.models.measure import Measure
from runs.models.run import Run
from runs.models.target import Target

VERDICTS = [(verdict.value, verdict.label) for verdict in ChangeVerdict]


class Baseline(models.Model):
    """The run that others are compared with: per suite and target, or per branch."""

    suite = models.ForeignKey("scenarios.Suite", on_delete=models.CASCADE, related_name="baselines")
    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="baselines")
    branch = models.CharField(max_length=200, blank=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="baseline_of")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["suite", "target", "branch"], name="one_baseline_each")
        ]

    def __str__(self) -> str:
        return f"{self.run} for {self.suite}"


class Change(models.Model):
    """A verdict of a run compared with its baseline: for a measure over the run, or for one scenario."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="changes")
    baseline = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    measure = models.ForeignKey(Measure, on_delete=models.PROTECT, related_name="+")
    scenario = models.ForeignKey("scenarios.Scenario", on_delete=models.CASCADE, null=True, related_name="+")
    verdict = models.CharField(max_length=14, choices=VERDICTS)
    before = models.FloatField(null=True)
    after = models.FloatField(null=True)
    detail = models.JSONField(default=dict)
    """The comparison as `runs.warehouse.measure_changes.change_json`; the whole's pass rate also names, as
    `not_comparable`, the scenarios that were left out."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "measure", "scenario"], name="one_change_each")]

    def __str__(self) -> str:
        return f"{self.measure} {self.verdict}"


class AlertState(models.TextChoices):
    """The triage state of an alert, from untriaged to closed."""

    UNTRIAGED = "untriaged"
    ACKNOWLEDGED = "acknowledged"
    INVESTIGATING = "investigating"
    FIXED = "fixed"
    WONT_FIX = "wont_fix"
    INVALID = "invalid"


class Alert(models.Model):
    """The regressions of one run, to triage."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="alerts")
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="alert")
    state = models.CharField(max_length=14, choices=AlertState.choices, default=AlertState.UNTRIAGED)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    note = models.TextField(blank=True)
    link = models.URLField(blank=True)
    due = models.DateField(null=True)
    created = models.DateTimeField(default=timezone.now)
    first_triaged = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["project", "state", "-id"], name="alert_by_state")]

    def __str__(self) -> str:
        return f"alert {self.pk}"
