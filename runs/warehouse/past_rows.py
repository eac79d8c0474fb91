"""Rows of recent runs, from which is reckoned what the next one comes to."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import Count, F, Max, Q, QuerySet, Sum

from evaluators.aggregate import RunAggregate
from runs.models import Measure, Run, RunMeasure
from runs.models.run import MAINLINE, RunState, Trigger

LOOKED_AT = 300
"""The project's newest finished runs, among which recent ones are found: by index, however long the history is."""
APART = (Trigger.CONFIRM, Trigger.IMPORT)
"""Starts of runs that do not count: of chosen scenarios only, or not run here."""
PASS, COST, SECONDS = "pass", "cost_usd", "seconds"
MEASURES = (PASS, COST, SECONDS)

Arm = tuple[int, str]
"""The key of a target, and a model."""


class PastRun(NamedTuple):
    """A finished run, as far as planning asks."""

    pk: int
    suite: int
    target: int
    model: str
    branch: str
    trigger: str
    cost_usd: float | None
    passed: int
    failed: int
    errors: int

    @property
    def done(self) -> int:
        """Trials that ended, errors among them."""
        return self.passed + self.failed + self.errors

    @property
    def arm(self) -> Arm:
        return self.target, self.model

    @property
    def counts(self) -> bool:
        return self.branch in MAINLINE and self.trigger not in APART and self.done > 0


# Columns only: Django goes through every row of a query with an expression in it.
_COLUMNS = (
    *("pk", "suite_id", "target_id", "model", "branch", "trigger", "cost_usd"),
    *("passed", "failed", "errors"),
)


def newest_runs(project: int) -> QuerySet[Run, Any]:
    """Return a project's newest finished runs as values of `PastRun`. One query, as each of these."""
    found = Run.objects.filter(project=project, state=RunState.FINISHED).order_by("-pk")
    return found.values_list(*_COLUMNS)[:LOOKED_AT]


class MeasuredScenario(NamedTuple):
    """A measure of a scenario over the runs of a target and model."""

    target: int
    model: str
    scenario: int
    name: str
    runs: int
    n: int
    total: float
    means: float
    squares: float
    within: float
    last: float | None
    """Its mean in the suite's last run, None where that has none."""

    @property
    def failed_last(self) -> bool:
        return self.name == PASS and self.last is not None and self.last < 1.0

    @property
    def over_runs(self) -> RunAggregate:
        return RunAggregate(self.runs, self.n, self.total, self.means, self.squares, self.within)


def by_scenario(runs: tuple[int, ...], scenarios: tuple[int, ...], last: int) -> QuerySet[RunMeasure, Any]:
    """Return the values of `MeasuredScenario`; `last` is the suite's last run."""
    # The three columns of one index: a run has ten times as many measures as are asked for.
    found = RunMeasure.objects.filter(run__in=runs, scenario__in=scenarios, measure__in=_wanted())
    groups = ("run__target_id", "run__model", "scenario_id", "measure__name")
    sums = {
        "runs": Count("pk"),
        "values": Sum("n"),
        "total": Sum(F("n") * F("mean")),
        "means": Sum("mean"),
        "squares": Sum(F("mean") * F("mean")),
        "within": Sum("m2"),
        "last": Max("mean", filter=Q(run=last)),
    }
    return found.order_by().values_list(*groups).annotate(**sums)


def of_runs(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    """Return run, measure, mean over its scenarios, and their number."""
    found = RunMeasure.objects.filter(run__in=runs, scenario=None, measure__in=_wanted())
    return found.values_list("run_id", "measure__name", "mean", "n")


def _wanted() -> QuerySet[Measure, Any]:
    return Measure.objects.filter(layer="trial", name__in=MEASURES).values("pk")
