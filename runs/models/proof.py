"""Proofs of suites: requests for them, and what they found for each scenario."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from scenarios.models import ScenarioVersion, SuiteVersion


class Seal(models.TextChoices):
    """What is known of a scenario before its verdicts count."""

    PROVED = "proved", "proved"
    UNPROVED = "unproved", "unproved"
    NO_AGENT = "passes_without_agent", "passes without an agent"
    SOLUTION_FAILS = "solution_fails", "solution fails"


class SuiteProof(models.Model):
    """A request to prove a suite version, and the proofs of its scenarios; a `Job` says who works on it."""

    PATIENCE = timedelta(hours=1)
    """A proof without a result by then has expired."""

    suite_version = models.ForeignKey(SuiteVersion, on_delete=models.CASCADE, related_name="proofs")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)
    finished = models.DateTimeField(null=True)
    max_usd = models.FloatField(null=True)
    """What judges may cost; None asks no judge."""
    cost_usd = models.FloatField(default=0.0, db_default=0.0)
    """What judges cost, as far as known."""
    error = models.TextField(blank=True)
    """Why it ended early; empty if every scenario was tried."""

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["created"], name="proof_unfinished", condition=models.Q(finished=None))
        ]

    def __str__(self) -> str:
        return f"proof of {self.suite_version}"

    def is_waiting(self, *, now: datetime) -> bool:
        """Return whether a result may still arrive."""
        return self.finished is None and now - self.created < self.PATIENCE


class ScenarioProof(models.Model):
    """The proof of one scenario version."""

    proof = models.ForeignKey(SuiteProof, on_delete=models.CASCADE, related_name="scenarios")
    scenario_version = models.ForeignKey(ScenarioVersion, on_delete=models.CASCADE, related_name="+")
    solution = models.CharField(max_length=64, blank=True)
    """The SHA-256 of its solution; empty without one."""
    seal = models.CharField(max_length=20, choices=Seal.choices)
    reason = models.TextField(blank=True)
    """Why it is not proved, or what was not checked."""
    is_failure = models.BooleanField(default=False)
    """Whether something is wrong, not only missing."""
    held = models.JSONField(default=list)
    """Gates that hold before an agent starts, as sentences."""
    changed = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """Files that gates execute and the reference solution changes."""

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["proof", "scenario_version"], name="one_proof_a_scenario")
        ]

    def __str__(self) -> str:
        return f"{self.scenario_version} {self.seal}"
