"""Launches and their runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.lib.numbers import format_count
from evalhub.teams.models import Priority, Project
from runs.models.target import Target, TargetVersion
from scenarios.models import Guidance, SuiteVersion


class Trigger(models.TextChoices):
    """How a launch was started."""

    WEB = "web"
    API = "api"
    CLI = "cli"
    IMPORT = "import"
    CONFIRM = "confirm"


MAINLINE = ("", "main", "master")
"""Branches that count as mainline: no branch, or the one that others are merged into."""
NOT_CONFIRMING = ~models.Q(trigger=Trigger.CONFIRM)
"""Runs of a line: a confirmation runs some scenarios only, and half of it on an older configuration."""
TRIALS_FOR_AN_ERROR = 3
"""From one error in this many finished trials on, a run has no verdict: what is left of it may be a biased sample."""
MOSTLY_MEASURED = models.Q(not_started="") & (
    models.Q(errors=0)
    | models.Q(passed__gt=models.F("errors") * (TRIALS_FOR_AN_ERROR - 1) - models.F("failed"))
)
"""Runs with fewer errors than that whose tool started; the opposite of `is_unusable` in queries."""
COST_UNKNOWN = models.Q(outcome__in=("pass", "fail"), cost_usd=None)
"""Trials that cost something, and nobody knows what."""
ERRORS, NOT_STARTED, UNCHECKED = "errors", "tool_not_started", "unchecked"
"""The reasons of a missing verdict, for machines."""
STALE = models.F("fingerprint__staleness__stale")
"""Whether a run's eval cases were generated for another tool description; `is_stale` in queries."""


def seconds_between(began: datetime | None, ended: datetime | None) -> float | None:
    """Return how long a run took; None while it is open or if its imported results have no times."""
    # Imported results without times end when they begin.
    return ((ended - began).total_seconds() or None) if began and ended else None


def cost_per_success(cost_usd: float | None, retest_usd: float, passed: int) -> float | None:
    """Return the first trials' cost for each that passed; None if unknown or none passed."""
    return (cost_usd - retest_usd) / passed if cost_usd is not None and passed else None


class Preset(models.TextChoices):
    """What a launch is for."""

    PLAIN = "", "runs"
    GUIDANCE = "guidance", "versions of guidance"
    LIFT = "lift", "lift of a skill"
    CAUSES = "causes", "possible causes set apart"
    CONFIRM = "confirm", "confirmation of an alert"
    MORE = "more", "further trials of compared runs"


class Arm(models.TextChoices):
    """The part of a run in a launch that compares; of possible causes the name of the factor that is set back."""

    NONE = ""
    REFERENCE = "reference"
    NEW = "new"
    PREVIOUS = "previous", "previous version"
    OLD = "old", "old configuration"
    CONTROL = "control"


class Launch(models.Model):
    """The runs of one request: one for each suite, target, model and guidance."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="launches")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    trigger = models.CharField(max_length=10, choices=Trigger.choices)
    request = models.JSONField(default=dict)
    priority = models.SmallIntegerField(
        choices=Priority.choices, default=Priority.NORMAL, db_default=Priority.NORMAL
    )
    """Which launches of the project get its lanes first."""
    held_by = models.CharField(max_length=250, blank=True, default="", db_default="")
    """The process that executes its runs by itself (`--now`); empty if workers do."""
    held_until = models.FloatField(default=0.0, db_default=0.0)
    """When the hold of that process ends unless it renews it, in the database's seconds since 1970."""
    preset = models.CharField(max_length=10, choices=Preset.choices, blank=True, default="", db_default="")
    about = models.ForeignKey("Run", on_delete=models.CASCADE, null=True, related_name="launches_about")
    """The run whose causes it sets apart, which it confirms, or which gets further trials."""
    stop = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    """When it stops adding trials: `first` and `most` of each scenario, and of further trials the `looks` so far."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["held_by"], name="launch_held", condition=~models.Q(held_by="")),
        ]

    def __str__(self) -> str:
        return f"launch {self.pk}"


class RunState(models.TextChoices):
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


OPEN = (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)


def nothing_counted() -> dict[str, Any]:
    """Return how a run without measured trials counts commands, as `counting.as_stored` writes it."""
    return {"all": None}


def has_too_many_errors(passed: int, failed: int, errors: int) -> bool:
    """Return whether a run with these outcomes has so many errors that what is left of it may be a biased sample."""
    return errors > 0 and errors * TRIALS_FOR_AN_ERROR >= passed + failed + errors


class Outcomes(Protocol):
    """The outcomes of a run's trials, whether the run is read as a model or as a row."""

    @property
    def passed(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def not_started(self) -> str: ...
    @property
    def is_unchecked(self) -> bool: ...


class ClosedRun(Outcomes, Protocol):
    """What the sentences on a missing verdict need of a run."""

    @property
    def id(self) -> int: ...
    @property
    def unjudged(self) -> int: ...


def reason_without_verdict(run: Outcomes) -> str:
    """Return why a closed run has no verdict, for machines; empty if nothing is in its way."""
    if run.not_started:
        return NOT_STARTED
    if has_too_many_errors(run.passed, run.failed, run.errors):
        return ERRORS
    return UNCHECKED if run.is_unchecked else ""


def no_verdict(run: ClosedRun) -> str:
    """Return why a run has no verdict, in sentences; empty if nothing is in its way."""
    reason = reason_without_verdict(run)
    if reason == NOT_STARTED:
        return f"Run {run.id} has no verdict: {run.not_started}"
    if reason == UNCHECKED:
        return (
            f"Run {run.id} has no verdict: nothing checked its trials, so their passes are vacuous. Add gates or "
            "assertions to the scenarios, or name a judge for their statements."
        )
    if reason != ERRORS:
        return ""
    whole = format_count(run.passed + run.failed + run.errors, "trial")
    return f"Run {run.id} has no verdict: {run.errors} of {whole} hit errors, a third or more. {_advise(run)}"


def _advise(run: ClosedRun) -> str:
    """Return what to do about a run's errors."""
    if not run.unjudged:
        return "Fix their cause, then retry them."
    judge = (
        f"`judge_again {run.id} --judge-model M --adopt` asks a judge about the stored transcripts, without running the"
        " agent again"
    )
    if run.unjudged >= run.errors:
        return f"They have no judgings. Judge them now: {judge}."
    return f"{run.unjudged} of them have no judgings. Judge them now: {judge}. Retry the others."


def has_estimates(counting: Mapping[str, Any]) -> bool:
    """Return whether ends are estimated from text in any scenario, from `Run.counting`."""
    known: list[Any] = [counting.get("all"), *(counting.get("scenarios") or {}).values()]
    return any("estimated" in each[1] for each in known if each)


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
    # No query filters by it, and an index costs a write for every run.
    target_version = models.ForeignKey(
        TargetVersion, on_delete=models.PROTECT, null=True, related_name="runs", db_index=False
    )
    """The target as of preparation: later edits don't affect the run. None before it is prepared."""
    judge_versions = models.ManyToManyField(TargetVersion, related_name="judged_runs")
    """The targets that may judge its trials, as of preparation."""
    model = models.CharField(max_length=200, blank=True)
    guidance = models.ForeignKey(Guidance, on_delete=models.PROTECT, null=True, related_name="runs")
    tool_version = models.CharField(max_length=200, blank=True)
    options = models.JSONField(default=dict)
    """`RunOptions` as JSON: the options without a column."""
    fingerprint = models.JSONField(default=dict)

    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.QUEUED)
    outcome = models.CharField(max_length=5, blank=True)
    error = models.TextField(blank=True)
    warnings = models.JSONField(default=list)
    cancel_requested = models.BooleanField(default=False)
    token = models.CharField(max_length=32, blank=True)
    lease_until = models.FloatField(default=0.0)
    starts = models.PositiveIntegerField(default=0, db_default=0)
    """Number of preparations started."""
    put_back = models.PositiveSmallIntegerField(default=0, db_default=0)
    """How often its preparation was requeued for a full disk; not counted in `starts`."""
    last_lane_at = models.FloatField(default=0.0)
    """When a lane last took a slot, in the database's seconds."""
    concurrency = models.PositiveIntegerField(default=1)

    trials = models.PositiveIntegerField(default=0)
    """Its first trials; `passed` to `cancelled` count those alone."""
    open = models.PositiveIntegerField(default=0)
    """Trials that are neither finished nor cancelled, those of a retest included; the run closes when it reaches 0."""
    passed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    pass_rate = models.FloatField(null=True)
    """The mean over scenarios, without errors; None before the end and where no trial passed or failed."""
    unjudged = models.PositiveIntegerField(default=0, db_default=0)
    """Errors of a closed run for which only a judge's answer is missing: `judge_again` judges their transcripts."""
    is_unchecked = models.BooleanField(default=False, db_default=False)
    """Whether nothing checked any of its trials, so that their passes say nothing."""
    not_started = models.TextField(blank=True, default="", db_default="")
    """That its agents called the tool and it never started, in a sentence; empty otherwise."""
    cancelled = models.PositiveIntegerField(default=0)
    cost_usd = models.FloatField(null=True)
    """Of all its trials, those of a retest included; None if unknown."""
    retest_usd = models.FloatField(default=0.0, db_default=0.0)
    """How much of that its retest's trials cost."""
    max_usd = models.FloatField(null=True)
    """The budget of its launch in USD; None for no limit."""
    price_source = models.TextField(blank=True, default="", db_default="")
    """Where its trials' costs come from (`prices.price_source`); empty if unknown."""
    cost_notes = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """What a reader must know of its trials' costs, one sentence each (`trial_costs.run_notes`)."""
    tokens_in = models.BigIntegerField(default=0)
    tokens_out = models.BigIntegerField(default=0)
    counting = models.JSONField(default=nothing_counted, db_default=models.Value({}, models.JSONField()))
    """How its trials' commands are counted (`counting.as_stored`)."""

    looks = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """What each look of a run until a verdict found (`evaluators.statistics.looks.StoredLook`), the first one first."""
    retests = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """What fresh trials of single scenarios say (`runs.compare.retests.Retest`), in the order of their batches."""
    arm = models.CharField(max_length=20, blank=True, default="", db_default="")
    """Its `Arm` in its launch, or the factor that it sets back; empty in a launch that compares nothing."""
    reference = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, related_name="compared", db_index=False
    )
    """The run of its launch that it is compared with."""
    baseline = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    verdict = models.CharField(max_length=14, blank=True, default="", db_default="")
    """A `ChangeVerdict` against its line or its baseline; empty without one."""
    old_side = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    """What the verdict was made with, as `runs.compare.line.Reference.stored`; empty without a verdict, and of older
    releases."""
    is_experiment = models.BooleanField(default=False, db_default=False)
    """Its guidance is not the adopted one, or somebody called it an experiment: never a baseline, never an alert."""
    configuration_changed = models.BooleanField(default=False, db_default=False)
    """Its guidance was adopted after its baseline ran, so a difference isn't a regression of the tool."""
    branch = models.CharField(max_length=200, blank=True)
    commit = models.CharField(max_length=64, blank=True)
    tags = models.JSONField(default=list)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    trigger = models.CharField(max_length=10, choices=Trigger.choices)
    created = models.DateTimeField(default=timezone.now)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)
    followed_up = models.BooleanField(default=True, db_default=True)
    """Whether what follows its close was done; the tick does it if the worker that closed it was lost."""
    rollups_at = models.DateTimeField(null=True)
    """When its rollups or its trials' exposure were last written; None for runs of older releases."""

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["project", "-id"], name="run_by_project"),
            models.Index(fields=["suite", "target", "-id"], name="run_by_suite"),
            models.Index(fields=["project", "created"], name="run_by_day"),
            models.Index(fields=["project", "state"], name="run_by_state"),
            models.Index(fields=["project", "verdict", "-id"], name="run_by_verdict"),
            models.Index(
                fields=["reference"], name="run_by_reference", condition=models.Q(reference__isnull=False)
            ),
            models.Index(fields=["finished"], name="run_to_follow", condition=models.Q(followed_up=False)),
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
    def is_estimated(self) -> bool:
        """Return whether ends of its commands are estimated from text."""
        return has_estimates(self.counting)

    @property
    def uuid(self) -> UUID:
        """The run's id outside of this evalhub (tool-forge eval runner, runId).

        A version 8 UUID (RFC 9562) of the time it was created and its number, so that earlier runs have one too.
        """
        created = hashlib.sha256(self.created.astimezone(UTC).isoformat().encode()).digest()
        high = int.from_bytes(created[:8], "big") & ~(0xF << 12) | (8 << 12)
        return UUID(int=high << 64 | 0b10 << 62 | self.pk)

    @property
    def imported_id(self) -> str:
        """The id that it was imported under, which other programs choose; empty for other runs."""
        return str((self.options.get("import") or {}).get("run_id") or "")

    @property
    def shown_id(self) -> str:
        """The run's UUID in exports: the one that it was imported under, so that it is the same run everywhere."""
        return self.imported_id if _is_uuid(self.imported_id) else str(self.uuid)

    @property
    def cost_per_success(self) -> float | None:
        """The first trials' cost in USD, judges included, for each that passed; None if unknown or none passed."""
        return cost_per_success(self.cost_usd, self.retest_usd, self.passed)

    @property
    def cost_of_trial(self) -> float | None:
        """The mean cost of its first trials in USD, judges included; None if unknown."""
        done = self.passed + self.failed + self.errors
        return (self.cost_usd - self.retest_usd) / done or None if self.cost_usd and done else None

    @property
    def is_unusable(self) -> bool:
        """Whether it is without a verdict for its errors or its tool: never a baseline, in no line."""
        return bool(self.not_started) or has_too_many_errors(self.passed, self.failed, self.errors)

    @property
    def is_cost_partial(self) -> bool:
        """Whether the cost of some trials is known, and that of others isn't. One query."""
        return self.cost_usd is not None and self.trial_set.filter(COST_UNKNOWN).exists()

    @property
    def no_verdict(self) -> str:
        """Why it has no verdict, in sentences; empty if nothing is in its way."""
        return no_verdict(self)

    @property
    def line_branches(self) -> tuple[str, ...]:
        """The branches whose runs are of the same line."""
        return MAINLINE if self.branch in MAINLINE else (self.branch,)

    def find_retested(self, outcome: str) -> list[str]:
        """Return the scenarios whose fresh trials had an outcome, in the order of their batches."""
        return [each["key"] for each in self.retests if each["outcome"] == outcome]

    @property
    def is_open(self) -> bool:
        """Whether the run is not closed."""
        return self.state in (RunState.QUEUED, RunState.PREPARING, RunState.RUNNING)

    @property
    def seconds(self) -> float | None:
        """Wall-clock time from the first trial's claim to the close, without breaks before retries; None if unknown."""
        return seconds_between(self.started, self.finished)


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def run_with_uuid(text: str) -> Run | None:
    """Return the run with this UUID; None for any other text."""
    try:
        uuid = UUID(text)
    except ValueError:
        return None
    run = Run.objects.filter(pk=uuid.int & (1 << 62) - 1).first()
    return run if run is not None and run.uuid == uuid else None


class RunSlot(models.Model):
    """A slot for one parallel trial of a run."""

    # `one_lane_a_number` begins with it.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="slots", db_index=False)
    n = models.PositiveIntegerField()
    token = models.CharField(max_length=32, blank=True)
    lease_until = models.FloatField(default=0.0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "n"], name="one_lane_a_number")]

    def __str__(self) -> str:
        return f"{self.run} {self.n}"
