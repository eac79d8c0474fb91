"""The fact rows."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
from django.db import models

from evaluators.model import Event, Transcript
from runs.models.run import Run
from scenarios.models import ScenarioVersion

LONGEST_ACTIVITY = 200


class TrialState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class Trial(models.Model):
    """One execution of one scenario in a run.

    queued ──claim──▶ running ──record──▶ finished
       ▲                 └─lease expires─┘ back to queued, or finished as an error after too many starts
       └── cancel ──▶ cancelled
    """

    # Indexes below begin with run and with scenario.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="trial_set", db_index=False)
    scenario_version = models.ForeignKey(ScenarioVersion, on_delete=models.PROTECT, related_name="+")
    scenario = models.ForeignKey(
        "scenarios.Scenario", on_delete=models.PROTECT, related_name="trials", db_index=False
    )
    """The version's scenario again, so that a scenario's last trials need no join."""
    index = models.PositiveIntegerField(default=0)
    position = models.PositiveIntegerField(default=0)
    """Order of work in the run: all scenarios once, then all again."""
    state = models.CharField(max_length=10, choices=TrialState.choices, default=TrialState.QUEUED)
    outcome = models.CharField(max_length=5, blank=True)

    token = models.CharField(max_length=32, blank=True)
    lease_until = models.FloatField(default=0.0)
    starts = models.PositiveIntegerField(default=0)
    put_back = models.PositiveSmallIntegerField(default=0, db_default=0)
    """How often it went back to the queue because a disk was full; these are not among `starts`."""
    worker = models.CharField(max_length=200, blank=True, default="", db_default="")
    """The process that carries it or has carried it, as it is called among the workers."""
    activity = models.CharField(max_length=LONGEST_ACTIVITY, blank=True, default="", db_default="")
    """The last call of its agent while it runs, without secrets; empty before the first one and once it has ended."""
    calls_so_far = models.PositiveIntegerField(null=True)
    """How many calls its agent has made while it runs; None where they cannot be counted, and once it has ended."""

    activity_exit_code = models.IntegerField(null=True)
    """What that last call came to; None while it runs, where nobody tells, and once the trial has ended."""

    completed = models.BooleanField(null=True)
    timed_out = models.BooleanField(default=False)
    exit_code = models.IntegerField(null=True)
    composite = models.FloatField(null=True)
    seconds = models.FloatField(null=True)
    cost_usd = models.FloatField(null=True)
    tokens_in = models.BigIntegerField(null=True)
    tokens_out = models.BigIntegerField(null=True)
    tokens_estimated = models.BooleanField(default=False)
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=20, blank=True)
    answer = models.TextField(blank=True)
    scores = models.JSONField(default=list)
    """Every layer's scores as `evaluate` returned them, which is what pages of one trial read."""
    detail = models.JSONField(default=dict)
    """Interaction, diagnosis, composite weights, notes of setup and post scripts."""
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "scenario_version", "index"], name="one_trial_an_index"),
        ]
        indexes = [
            models.Index(fields=["run", "position"], name="trial_queued", condition=models.Q(state="queued")),
            models.Index(fields=["scenario", "-id"], name="trial_by_scenario"),
            # All that strips of dots and lists of siblings read, so that they never touch the rows.
            models.Index(fields=["run", "scenario", "index", "state", "outcome"], name="trial_of_run"),
            models.Index(fields=["lease_until"], name="trial_running", condition=models.Q(state="running")),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk}"


class TranscriptRecord(models.Model):
    """A trial's transcript, compressed; apart from the trial so that lists never load it."""

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, primary_key=True, related_name="transcript")
    source = models.CharField(max_length=12)
    data = models.BinaryField()
    events = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"transcript of {self.trial_id}"

    @staticmethod
    def pack(transcript: Transcript) -> bytes:
        """Return the transcript as it is stored."""
        return _compressed(msgspec.json.encode(transcript))

    def unpack(self) -> Transcript:
        """Return the stored transcript."""
        return msgspec.json.decode(zlib.decompress(self.data), type=Transcript)

    @staticmethod
    def events_of(data: bytes, most: int) -> tuple[tuple[Event, ...] | None, int]:
        """Return the events of a stored transcript, and how many bytes were read; no events where it has more than `most`."""
        inflate = zlib.decompressobj()
        content = inflate.decompress(data, most)
        return (_only_events(content).events if inflate.eof else None), len(content)


class OnlyEvents(msgspec.Struct):
    """What is read of a transcript where its text, often the longest part, is not asked for."""

    events: tuple[Event, ...] = ()


_only_events = msgspec.json.Decoder(OnlyEvents).decode


SHORT = 4096
"""Bytes of a transcript for which small tables do as well."""


def _compressed(content: bytes) -> bytes:
    """Return the content as `zlib.decompress` takes it back; the usual tables of 256 KB take longer to make than to use."""
    if len(content) > SHORT:
        return zlib.compress(content, level=1)
    deflate = zlib.compressobj(level=1, wbits=12, memLevel=5)
    return deflate.compress(content) + deflate.flush()


class CommandRecord(models.Model):
    """One command of the tool under test, in order."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="commands")
    n = models.PositiveIntegerField()
    line = models.TextField()
    subcommand = models.CharField(max_length=200, blank=True)
    exit_code = models.IntegerField(null=True)
    """None is unknown."""
    failed = models.BooleanField(default=False)
    help = models.BooleanField(default=False)
    retry_of = models.PositiveIntegerField(null=True)
    event = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["n"]
        constraints = [models.UniqueConstraint(fields=["trial", "n"], name="one_command_a_number")]

    def __str__(self) -> str:
        return self.line[:60]


class Artifact(models.Model):
    """A file kept of a trial; the bytes lie once for each content, under the data directory."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=60)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    media_type = models.CharField(max_length=60, default="text/plain")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["trial", "name"], name="one_artifact_a_name")]

    def __str__(self) -> str:
        return self.name


def json_of(value: Any) -> Any:
    """Return a value of `evaluators` as plain JSON, as the JSON columns take it."""
    return msgspec.to_builtins(value)
