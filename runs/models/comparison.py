"""Baselines, changes from them, alerts to triage, and annotations of trends."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from evaluators.statistics.measure_change import ChangeVerdict
from runs.models.measure import Measure
from runs.models.run import Launch, Run
from runs.models.target import Target

VERDICTS = [(each.value, each.label) for each in ChangeVerdict if each is not ChangeVerdict.CHANGED]


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

    # `one_change_each` begins with it.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="changes", db_index=False)
    baseline = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    measure = models.ForeignKey(Measure, on_delete=models.PROTECT, related_name="+")
    scenario = models.ForeignKey("scenarios.Scenario", on_delete=models.CASCADE, null=True, related_name="+")
    verdict = models.CharField(max_length=14, choices=VERDICTS)
    before = models.FloatField(null=True)
    after = models.FloatField(null=True)
    detail = models.JSONField(default=dict)
    """The comparison as `runs.compare.lost_scenarios.change_json`; the whole's pass rate also names, as
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
    WONT_FIX = "wont_fix", "Won't fix"
    """Called *intended* after a change on purpose; see `shown_state`."""
    INVALID = "invalid", "Not a regression"


OPEN_ALERTS = (AlertState.UNTRIAGED, AlertState.ACKNOWLEDGED, AlertState.INVESTIGATING)
"""States in which an alert still needs work: the regressions that count as open everywhere."""


class Evidence(models.TextChoices):
    """How far an alert is proved: the line's next run, or *Confirm…*, decides on a suspected one."""

    SUSPECTED = "suspected"
    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not_confirmed", "Not confirmed"


class AlertKind(models.TextChoices):
    """What an alert is about."""

    REGRESSION = "regression"
    DRIFT = "drift"
    """A decline over several runs, each too small for a regression."""
    AFTER_CHANGE = "after_change", "Worse after a change"
    """A regression after a change of guidance or model on purpose, so it is not the tool's."""
    DEARER = "dearer"
    SLOWER = "slower"


OF_SUITE = (AlertKind.REGRESSION, AlertKind.AFTER_CHANGE)
"""Alerts of headline measures and scenarios, which freeze the line."""
OF_AMOUNTS = {AlertKind.DEARER: "trial/cost_usd", AlertKind.SLOWER: "trial/seconds"}
"""Alerts of one measure, which freeze its own line alone."""

INTENDED = "intended"


def shown_state(state: str, kind: str) -> str:
    """Return what a state is called on pages: *intended* where what won't be fixed was changed on purpose."""
    return INTENDED if (state, kind) == (AlertState.WONT_FIX, AlertKind.AFTER_CHANGE) else state


def state_label(state: str, kind: str) -> str:
    """Return a state in the words of the button that sets it."""
    return "Intended" if shown_state(state, kind) == INTENDED else AlertState(state).label


class Alert(models.Model):
    """What got worse in one run, or a decline of its line, to triage. A run has at most one of each kind."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="alerts")
    # `one_alert_a_kind` begins with it.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="alerts", db_index=False)
    state = models.CharField(max_length=14, choices=AlertState.choices, default=AlertState.UNTRIAGED)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    note = models.TextField(blank=True)
    link = models.URLField(blank=True)
    created = models.DateTimeField(default=timezone.now)
    kind = models.CharField(
        max_length=12,
        choices=AlertKind.choices,
        default=AlertKind.REGRESSION,
        db_default=AlertKind.REGRESSION,
    )
    drift = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    """Of a drift, the decline as `runs.compare.amounts.decline_of` finds it."""
    decided = models.DateTimeField(null=True)
    """When it was closed, or was not confirmed: from then on its line continues (`runs.compare.line`)."""
    triaged = models.BooleanField(default=False, db_default=False)
    """Whether a person changed it; a confirmation doesn't."""
    evidence = models.CharField(
        max_length=13, choices=Evidence.choices, default=Evidence.SUSPECTED, db_default=Evidence.SUSPECTED
    )
    named = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    """The scenarios that broke, by key: those for which the line waits."""
    confirmation = models.ForeignKey(
        Launch, on_delete=models.SET_NULL, null=True, related_name="confirms", db_index=True
    )
    """The launch of the last *Confirm…*; None without one."""
    reason = models.TextField(blank=True, default="", db_default="")
    """What confirmed it or didn't, in sentences."""

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["project", "state", "-id"], name="alert_by_state"),
        ]
        constraints = [models.UniqueConstraint(fields=["run", "kind"], name="one_alert_a_kind")]

    def __str__(self) -> str:
        return f"alert {self.pk}"

    @property
    def is_confirmable(self) -> bool:
        """Whether its new and old configuration can be run in turn, as far as it knows."""
        return self.kind in OF_SUITE and self.state in OPEN_ALERTS and self.confirmation_id is None

    @property
    def shown_state(self) -> str:
        return shown_state(self.state, self.kind)

    @property
    def state_label(self) -> str:
        return state_label(self.state, self.kind)


class Annotation(models.Model):
    """A person's note on the time axis of trends, at a run or on a day."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="annotations")
    suite = models.ForeignKey(
        "scenarios.Suite", on_delete=models.CASCADE, null=True, related_name="annotations"
    )
    """None for all suites of the project."""
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="annotations")
    day = models.DateField()
    """Of a run's annotation, the day of the run."""
    text = models.CharField(max_length=200)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-day", "-pk"]

    def __str__(self) -> str:
        return self.text
