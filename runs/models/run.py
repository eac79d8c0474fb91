"""Requests and their runs."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from runs.models.target import Target, TargetVersion
from scenarios.models import Guidance, SuiteVersion


class Trigger(models.TextChoices):
    """Through which door a launch came."""

    WEB = "web"
    API = "api"
    CLI = "cli"
    IMPORT = "import"
    CONFIRM = "confirm"


MAINLINE = ("", "main", "master")
"""Branches whose runs count as the mainline's: none, or that which others are merged into."""
STALE = models.F("fingerprint__staleness__stale")
"""True where a run's eval cases were generated for another description of their tool; as `is_stale` in queries."""


def seconds_between(began: datetime | None, ended: datetime | None) -> float | None:
    """Return how long a run took; None where it is not over, and where it has results that told no times."""
    # Those end when they begin, and nothing takes no time at all.
    return ((ended - began).total_seconds() or None) if began and ended else None


class Launch(models.Model):
    """What one request started: a run for each suite, target, model and guidance."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="launches")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    trigger = models.CharField(max_length=10, choices=Trigger.choices)
    request = models.JSONField(default=dict)
    created = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"launch {self.pk}"


class RunState(models.TextChoices):
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class Run(models.Model):
    """One suite version on one target with one model, one guidance and one tool version.

    queued ──claim──▶ preparing ──▶ running ──last trial──▶ finished
       │                  │            └──── cancel ──────▶ cancelled
       ▲                  ├── lease expires: back to queued, or finished as an error after too many starts
       └──── cancel ──────┴── cannot be prepared ─────────▶ finished (outcome error)
    """

    # `run_by_project` begins with it.
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs", db_index=False)
    launch = models.ForeignKey(Launch, on_delete=models.CASCADE, related_name="runs")
    suite_version = models.ForeignKey(SuiteVersion, on_delete=models.PROTECT, related_name="runs")
    suite = models.ForeignKey("scenarios.Suite", on_delete=models.PROTECT, related_name="runs")
    """The version's suite again, so that a suite's history needs no join."""
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="runs")
    # Nothing looks runs up by it, and an index would be written with every run.
    target_version = models.ForeignKey(
        TargetVersion, on_delete=models.PROTECT, null=True, related_name="runs", db_index=False
    )
    """What all its trials ask of the target, whoever edits that meanwhile; None before it is prepared."""
    judge_versions = models.ManyToManyField(TargetVersion, related_name="judged_runs")
    """How it asks those targets that may judge its trials, from when it is prepared on."""
    model = models.CharField(max_length=200, blank=True)
    guidance = models.ForeignKey(Guidance, on_delete=models.PROTECT, null=True, related_name="runs")
    tool_version = models.CharField(max_length=200, blank=True)
    options = models.JSONField(default=dict)
    """`RunOptions` as JSON: what was asked for beyond the columns here."""
    fingerprint = models.JSONField(default=dict)

    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.QUEUED)
    outcome = models.CharField(max_length=5, blank=True)
    error = models.TextField(blank=True)
    warnings = models.JSONField(default=list)
    cancel_requested = models.BooleanField(default=False)
    token = models.CharField(max_length=32, blank=True)
    lease_until = models.FloatField(default=0.0)
    starts = models.PositiveIntegerField(default=0, db_default=0)
    """Preparations that were begun."""
    put_back = models.PositiveSmallIntegerField(default=0, db_default=0)
    """How often its preparation went back because a disk was full; these are not among `starts`."""
    served = models.FloatField(default=0.0)
    """When a lane last took a place in it, in the database's seconds."""
    concurrency = models.PositiveIntegerField(default=1)

    trials = models.PositiveIntegerField(default=0)
    open = models.PositiveIntegerField(default=0)
    """Trials that are neither finished nor cancelled; the run closes when it reaches 0."""
    passed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    cancelled = models.PositiveIntegerField(default=0)
    cost_usd = models.FloatField(null=True)
    tokens_in = models.BigIntegerField(default=0)
    tokens_out = models.BigIntegerField(default=0)

    baseline = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    branch = models.CharField(max_length=200, blank=True)
    commit = models.CharField(max_length=64, blank=True)
    tags = models.JSONField(default=list)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    trigger = models.CharField(max_length=10, choices=Trigger.choices)
    created = models.DateTimeField(default=timezone.now)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["project", "-id"], name="run_by_project"),
            models.Index(fields=["suite", "target", "-id"], name="run_by_suite"),
            models.Index(fields=["project", "created"], name="run_by_day"),
            models.Index(fields=["project", "state"], name="run_by_state"),
            models.Index(
                fields=["state"],
                name="run_open",
                condition=models.Q(state__in=["queued", "preparing", "running"]),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    def get_absolute_url(self) -> str:
        return f"/p/{self.project.slug}/runs/{self.pk}/"

    @property
    def is_open(self) -> bool:
        """Whether anything may still happen to it."""
        return self.state in (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)

    @property
    def seconds(self) -> float | None:
        """Wall-clock time from the first trial's claim to the close, None before, and where nobody told."""
        return seconds_between(self.started, self.finished)


class RunSlot(models.Model):
    """One of a run's places: so many of its trials run at once, whatever number of wake-ups arrive."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="slots")
    n = models.PositiveIntegerField()
    token = models.CharField(max_length=32, blank=True)
    lease_until = models.FloatField(default=0.0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "n"], name="one_lane_a_number")]

    def __str__(self) -> str:
        return f"{self.run} {self.n}"
