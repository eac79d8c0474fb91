"""Measures, and the rollups that trends and comparisons read."""

from __future__ import annotations

from django.db import models

from runs.models.run import Run
from scenarios.models import Guidance


class Better(models.TextChoices):
    """The direction in which a measure improves; none if neither is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NONE = "none"


class Measure(models.Model):
    """A measure; a new one is a row, not a migration."""

    layer = models.CharField(max_length=20)
    name = models.CharField(max_length=200)
    unit = models.CharField(max_length=20, blank=True)
    better = models.CharField(max_length=6, choices=Better.choices, default=Better.NONE)

    class Meta:
        ordering = ["layer", "name"]
        constraints = [models.UniqueConstraint(fields=["layer", "name"], name="one_measure_a_name")]

    def __str__(self) -> str:
        return f"{self.layer}/{self.name}"


class _Rollup(models.Model):
    scenario = models.ForeignKey("scenarios.Scenario", on_delete=models.CASCADE, null=True, related_name="+")
    # With its own index SQLite would read a measure's rows of all runs.
    measure = models.ForeignKey(Measure, on_delete=models.PROTECT, related_name="+", db_index=False)
    n = models.PositiveIntegerField()
    mean = models.FloatField()
    m2 = models.FloatField()
    passed = models.PositiveIntegerField(null=True)
    """Number of values that passed; None if the measure has no pass or fail."""

    class Meta:
        abstract = True


class RunMeasure(_Rollup):
    """A measure over a run's first trials that are not errors; written when the run closes.

    With a scenario: over its trials. Without: over scenarios, n their number, mean the mean of
    their means, m2 the sum of squared differences between them.
    """

    # `one_rollup_each` begins with it; with its own index PostgreSQL would read the rows of every scenario.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="measures", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "scenario", "measure"], name="one_rollup_each")]
        indexes = [
            models.Index(
                fields=["measure", "run"], name="rollup_by_measure", condition=models.Q(scenario=None)
            )
        ]

    def __str__(self) -> str:
        return f"{self.measure} of {self.run}"


class LaterMeasure(_Rollup):
    """A scenario's measure over the trials of looks and extensions, which only the comparison that asked for them counts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="later_measures")

    def __str__(self) -> str:
        return f"later {self.measure} of {self.run}"


class SubcommandMeasure(models.Model):
    """Results of one subcommand of the tool over a scenario's trials, or over the run."""

    # `one_subcommand_each` begins with it.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="subcommands", db_index=False)
    scenario = models.ForeignKey("scenarios.Scenario", on_delete=models.CASCADE, null=True, related_name="+")
    subcommand = models.CharField(max_length=200)
    calls = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    first_tries = models.PositiveIntegerField(default=0)
    helps = models.PositiveIntegerField(default=0)
    retries_after_failure = models.PositiveIntegerField(default=0)
    unknown = models.PositiveIntegerField(default=0)
    helps_before = models.PositiveIntegerField(default=0, db_default=0)
    """Help calls before the trial's first call; the rest of `helps` came after it."""
    tries = models.JSONField(default=dict, db_default={})
    """Successes by attempt number: how often the first attempt worked, the second, and so on."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "scenario", "subcommand"], name="one_subcommand_each"),
        ]

    def __str__(self) -> str:
        return f"{self.subcommand} of {self.run}"


class GuidanceComparison(models.Model):
    """Two versions of guidance compared, as their page shows them (`runs.compare.guidance.guidance_findings`)."""

    before = models.ForeignKey(Guidance, on_delete=models.CASCADE, related_name="+")
    after = models.ForeignKey(Guidance, on_delete=models.CASCADE, related_name="+")
    basis = models.CharField(max_length=64)
    """A hash of the compared runs, when each was measured, and the project's smallest effects."""
    content = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["before", "after", "basis"], name="one_comparison_a_basis")
        ]

    def __str__(self) -> str:
        return f"{self.after_id} compared with {self.before_id}"
