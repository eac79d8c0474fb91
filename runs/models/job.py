"""Work beside trials (jobs, providers' batches), worker processes, and the check of their leases."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone

from runs.models.run import Launch, Run
from runs.models.trial import Trial


class Job(models.Model):
    """Work for one worker at a time. The request and its result are in the subject's own table.

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


class Worker(models.Model):
    """A worker process, as of its last heartbeat."""

    HEARD_WITHIN = timedelta(minutes=1)
    """A worker silent for longer counts as offline."""

    name = models.CharField(max_length=200, unique=True)
    seen = models.DateTimeField(default=timezone.now)
    lanes = models.PositiveIntegerField(default=0)
    """How many of its lanes are busy."""
    capacity = models.PositiveIntegerField(default=1, db_default=1)
    """How many lanes it has, busy or free."""
    sandbox = models.CharField(max_length=40, blank=True)
    version = models.CharField(max_length=40, blank=True)
    problem = models.CharField(max_length=500, blank=True, default="", db_default="")
    """Why it starts no trials, such as a full disk; empty if nothing is wrong."""
    free_bytes = models.BigIntegerField(null=True)
    """Free bytes on the fullest disk that its trials are written to."""
    store = models.CharField(max_length=100, blank=True, default="", db_default="")
    """The id of its file store; empty while it can't read the store."""

    labels = models.JSONField(default=list)
    """What it has, sorted (`EVALHUB_WORKER_LABELS`)."""
    has_judge = models.BooleanField(default=False, db_default=False)
    """Whether it has a judge of its own (`LLM_TOOL_TEST_JUDGE`)."""

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def heard(cls, *, now: datetime) -> models.QuerySet[Worker]:
        """Return the workers that are online."""
        return cls.objects.filter(seen__gt=now - cls.HEARD_WITHIN)


class LeaseCheck(models.Model):
    """The one row that says when leases were checked, in the database's seconds since 1970."""

    checked = models.FloatField()
    resumed = models.FloatField(default=0.0)
    """When a check followed a gap in which nobody could renew or check leases."""

    def __str__(self) -> str:
        return f"checked at {self.checked:.0f}"
