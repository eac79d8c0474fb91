"""Trials, and what is stored with each."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
from django.db import models

from evalhub.lib.limits import LONGEST_NAME
from evaluators.model import Command, Event, Score, Transcript
from runs.models.run import Run
from scenarios.models import ScenarioVersion


class TrialState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class Ended(models.Model):
    """How a trial or one of its attempts ended."""

    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=20, blank=True)
    seconds = models.FloatField(null=True)
    exit_code = models.IntegerField(null=True)
    cost_usd = models.FloatField(null=True)
    detail = models.JSONField(default=dict)
    """Interaction, diagnosis, composite weights, notes of setup and post scripts."""
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class Trial(Ended):
    """One execution of one scenario in a run.

    queued ──claim──▶ running ──record──▶ finished
       ▲                 └─lease expires─┘ back to queued, or finished as an error after too many starts
       └── cancel ──▶ cancelled
    """

    # The indexes below begin with run and with scenario.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="trial_set", db_index=False)
    scenario_version = models.ForeignKey(ScenarioVersion, on_delete=models.PROTECT, related_name="+")
    scenario = models.ForeignKey(
        "scenarios.Scenario", on_delete=models.PROTECT, related_name="trials", db_index=False
    )
    """The version's scenario, so that a scenario's last trials need no join."""
    index = models.PositiveIntegerField(default=0)
    position = models.PositiveIntegerField(default=0)
    """Order in the run: all scenarios once, then all again."""
    round = models.PositiveSmallIntegerField(default=0, db_default=0)
    """0 for the trials that the run was asked for, which rates, line and trend count; later ones are of looks,
    extensions and retests."""
    is_retest = models.BooleanField(default=False, db_default=False)
    """Whether it is a fresh trial of a scenario that looked worse: it decides `Run.retests`, and no comparison counts it."""
    state = models.CharField(max_length=10, choices=TrialState.choices, default=TrialState.QUEUED)
    outcome = models.CharField(max_length=5, blank=True)

    token = models.CharField(max_length=32, blank=True)
    lease_until = models.FloatField(default=0.0)
    starts = models.PositiveIntegerField(default=0)
    put_back = models.PositiveSmallIntegerField(default=0, db_default=0)
    """How often it was requeued for a full disk; not counted in `starts`."""
    worker = models.CharField(max_length=200, blank=True, default="", db_default="")
    """The name of the worker process that runs or ran it."""
    activity = models.CharField(max_length=LONGEST_NAME, blank=True, default="", db_default="")
    """The agent's last call, without secrets; empty before the first call and after the trial."""
    calls_so_far = models.PositiveIntegerField(null=True)
    """The number of calls so far; None if they can't be counted, and after the trial."""

    activity_exit_code = models.IntegerField(null=True)
    """The exit code of that call; None while it runs, if unknown, and after the trial."""

    completed = models.BooleanField(null=True)
    timed_out = models.BooleanField(default=False)
    composite = models.FloatField(null=True)
    tokens_in = models.BigIntegerField(null=True)
    tokens_out = models.BigIntegerField(null=True)
    tokens_estimated = models.BooleanField(default=False)
    answer = models.TextField(blank=True)
    scores = models.JSONField(default=list)
    """Every layer's scores as returned by `evaluate`; the pages of a trial read them."""

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "scenario_version", "index"], name="one_trial_an_index"),
        ]
        indexes = [
            models.Index(fields=["run", "position"], name="trial_queued", condition=models.Q(state="queued")),
            models.Index(fields=["scenario", "-id"], name="trial_by_scenario"),
            # Covers outcome strips and lists of siblings, so that they read only the index.
            models.Index(
                fields=["run", "scenario", "index", "state", "outcome", "round"], name="trial_of_run"
            ),
            models.Index(fields=["lease_until"], name="trial_running", condition=models.Q(state="running")),
            # Lists ask whether all trials of a run have a cost; without this index PostgreSQL reads every trial.
            models.Index(
                fields=["run", "outcome"], name="trial_without_cost", condition=models.Q(cost_usd=None)
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.pk}"


class TranscriptRecord(models.Model):
    """A trial's transcript, compressed; separate from the trial so that lists never load it."""

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, primary_key=True, related_name="transcript")
    source = models.CharField(max_length=12)
    data = models.BinaryField()
    events = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"transcript of {self.trial_id}"

    @staticmethod
    def pack(transcript: Transcript) -> bytes:
        """Return the transcript in stored form."""
        return _compress(msgspec.json.encode(transcript))

    def unpack(self) -> Transcript:
        """Return the stored transcript."""
        return msgspec.json.decode(zlib.decompress(self.data), type=Transcript)

    @staticmethod
    def events_of(data: bytes, most: int) -> tuple[tuple[Event, ...] | None, int]:
        """Return the events of a stored transcript and the number of bytes read; None for more than `most` bytes."""
        inflate = zlib.decompressobj()
        content = inflate.decompress(data, most)
        return (_only_events(content).events if inflate.eof else None), len(content)


class OnlyEvents(msgspec.Struct):
    """A transcript without its text, which is often the longest part."""

    events: tuple[Event, ...] = ()


_only_events = msgspec.json.Decoder(OnlyEvents).decode


SHORT = 4096
"""Size of a transcript below which small compression tables are as good."""


def _compress(content: bytes) -> bytes:
    """Return the content compressed for `zlib.decompress`; for small content, small tables are faster."""
    if len(content) > SHORT:
        return zlib.compress(content, level=1)
    deflate = zlib.compressobj(level=1, wbits=12, memLevel=5)
    return deflate.compress(content) + deflate.flush()


class CommandRecord(models.Model):
    """One command of the tool under test; `n` is its order."""

    # `one_command_a_number` begins with it.
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="commands", db_index=False)
    n = models.PositiveIntegerField()
    line = models.TextField()
    subcommand = models.CharField(max_length=200, blank=True)
    exit_code = models.IntegerField(null=True)
    """None if unknown."""
    failed = models.BooleanField(default=False)
    help = models.BooleanField(default=False)
    retry_of = models.PositiveIntegerField(null=True)
    event = models.PositiveIntegerField(null=True)
    failure = models.CharField(max_length=20, blank=True, default="", db_default="")
    """Why a call of an MCP server failed (`McpFailure`); empty for other tools."""
    end = models.CharField(max_length=10, blank=True, default="", db_default="")
    """How its end is known: recorded, reported, estimated or unknown; empty if counted by version 1 of the rules."""
    at_least = models.BooleanField(default=False, db_default=False)
    """Whether it ran once or more, such as in a loop."""
    seconds = models.FloatField(null=True)
    """The time it ran; None if not recorded."""

    class Meta:
        ordering = ["n"]
        constraints = [models.UniqueConstraint(fields=["trial", "n"], name="one_command_a_number")]

    def __str__(self) -> str:
        return self.line[:60]


class Artifact(models.Model):
    """A stored file of a trial; equal content is stored once, in the data directory."""

    # `one_artifact_a_name` begins with it.
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="artifacts", db_index=False)
    name = models.CharField(max_length=60)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    media_type = models.CharField(max_length=60, default="text/plain")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["trial", "name"], name="one_artifact_a_name")]
        # `prune` asks which contents are named.
        indexes = [models.Index(fields=["sha256"], name="artifact_by_content")]

    def __str__(self) -> str:
        return self.name


def json_of(value: Any) -> Any:
    """Return a value of `evaluators` as plain JSON for a JSON column."""
    return msgspec.to_builtins(value)


def scores_json(scores: tuple[Score, ...]) -> list[dict[str, Any]]:
    """Return scores as the trial's JSON; a judge's judging has its own table."""
    rows: list[dict[str, Any]] = json_of(scores)
    for row in rows:
        row.pop("judging", None)
    return rows


def transcript_row(trial_id: int, transcript: Transcript) -> dict[str, Any]:
    """Return the row of a trial's transcript."""
    return {
        "trial": trial_id,
        "source": transcript.source,
        "data": TranscriptRecord.pack(transcript),
        "events": len(transcript.events),
    }


def command_row(trial_id: int, command: Command) -> dict[str, Any]:
    """Return the row of one command of the tool."""
    columns = {name: getattr(command, name) for name in _OF_A_COMMAND}
    return {**columns, "trial": trial_id, "subcommand": (command.subcommand or "")[:200]}


_OF_A_COMMAND = [
    column.name for column in CommandRecord._meta.concrete_fields if column.name not in ("id", "trial")
]


class TrialAttempt(Ended):
    """What a trial ended with before it was retried or resumed."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    """From 1, in the order of execution."""
    state = models.CharField(max_length=10)
    worker = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["trial", "number"], name="one_attempt_a_number"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.trial}"


class SearchEntry(models.Model):
    """A finished trial's texts, redacted; a full-text index of the database follows the table by itself.

    On SQLite it is the FTS5 table `runs_search`, kept by triggers; on PostgreSQL a generated column with a GIN index.
    """

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, primary_key=True, related_name="search")
    facets = models.TextField(blank=True)
    """Words such as `xp12` for the project: filters are words of the index, so that they are as fast."""
    commands = models.TextField(blank=True)
    """One command to a line."""
    outputs = models.TextField(blank=True)
    """The first line of each output."""
    judge = models.TextField(blank=True)
    """Reasoning, issues and highlights of its judgings, each on a line."""
    answer = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"search entry of trial {self.trial_id}"
