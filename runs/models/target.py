"""Configured agents and models, their slots, checks and tries."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project

IMPORTED = "imported"
"""Provider of a target that exists only in imported results and cannot run here."""


class Target(models.Model):
    """A configured agent or model that does tasks or judges; its name is its key."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="targets")
    name = models.CharField(max_length=120)
    provider = models.CharField(max_length=40)
    definition = models.JSONField()
    """The entry of the targets file as written; `${{ VAR }}` references stay unresolved."""
    base_folder = models.CharField(max_length=500, blank=True)
    """The folder on the workers that relative paths start from."""
    workers = models.PositiveIntegerField(null=True)
    """Maximum of parallel trials over all runs; None means no limit."""
    labels = models.JSONField(default=list)
    """The labels of the definition, sorted: only workers that have all of them work for it."""
    accepted = models.BooleanField(default=True)
    """False for a proposal that an admin has not accepted."""
    changed = models.DateTimeField(default=timezone.now)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_target_a_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_imported(self) -> bool:
        """Whether only imported results of it exist, so nothing can run on it."""
        return self.provider == IMPORTED


class TargetVersion(models.Model):
    """A target's definition at the time runs were prepared, stored once for all of them."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="versions")
    sha256 = models.CharField(max_length=64)
    """Hash of the fields that results depend on; see `runs.targets.versions`."""
    definition = models.JSONField()
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["target", "sha256"], name="one_version_a_definition")]

    def __str__(self) -> str:
        return f"{self.target} {self.sha256[:8]}"


class TargetSlot(models.Model):
    """A slot for one parallel trial on a target, leased by a lane. Leases are in the database's seconds."""

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="slots")
    n = models.PositiveIntegerField()
    token = models.CharField(max_length=32, blank=True)
    lease_until = models.FloatField(default=0.0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["target", "n"], name="one_place_a_number")]

    def __str__(self) -> str:
        return f"{self.target} {self.n}"


class TargetCheck(models.Model):
    """A request to check whether a target works on the workers, and the result; a `Job` says who works on it."""

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


class TargetTry(models.Model):
    """A prompt for a definition, saved or not, and what came back; deleted after a while.

    A `Job` says who works on it.
    """

    LIFETIME = timedelta(hours=1)
    PATIENCE = timedelta(minutes=5)
    """A request without a result by then has expired."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="target_tries")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=120)
    definition = models.JSONField()
    base_folder = models.CharField(max_length=500, blank=True)
    prompt = models.TextField()
    created = models.DateTimeField(default=timezone.now)
    worker = models.CharField(max_length=200, blank=True)
    """The worker that tries or tried it."""
    result = models.JSONField(null=True)
    """What came back; see `runs.engine.trial`."""

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["created"], name="try_by_age")]

    def __str__(self) -> str:
        return f"try of {self.name}"

    def is_waiting(self, *, now: datetime) -> bool:
        """Return whether a result may still arrive."""
        return self.result is None and now - self.created < self.PATIENCE
