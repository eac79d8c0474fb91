"""What recent runs tell of the next one: cost, time and outcome by target and model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from django.db.models import Count, F, Max, Q, QuerySet, Sum

from evaluators.aggregate import RunAggregate
from runs.models import Measure, Run, RunMeasure
from runs.models.run import MAINLINE, RunState, Trigger

LAST, FEWEST = 20, 5
"""Runs of one target and model that count: fewer where there are many, so that a page answers as quickly."""
MOST = 30
"""Runs of a suite that count, over all targets and models, where each of them has its fewest."""
OF_ANY_SUITE = 10
"""Runs of a target and model that tell of it, whatever their suite."""


Found = TypeVar("Found")


@dataclass(frozen=True)
class ArmPast:
    """A suite on one target with one model, over its last runs."""

    scenarios: Mapping[str, Mapping[int, RunAggregate]] = field(default_factory=dict)
    """By measure and scenario."""
    whole: Mapping[str, RunAggregate] = field(default_factory=dict)
    """The means of the runs' scenarios, by measure."""
    surcharge: float = 1.0
    """What a trial costs with its judges, as a multiple of what its agent costs."""

    @property
    def runs(self) -> int:
        """Runs in which any trial counted."""
        return self.whole[PASS].runs if PASS in self.whole else 0


@dataclass(frozen=True)
class TargetPast:
    """Any suites on one target with one model, over its last runs; each run is one value."""

    runs: int = 0
    cost: RunAggregate | None = None
    """Mean cost of a trial, None where no run told any."""
    seconds: RunAggregate | None = None


@dataclass(frozen=True)
class Past:
    """What is known of a suite's next run."""

    arms: Mapping[Arm, ArmPast] = field(default_factory=dict)
    targets: Mapping[Arm, TargetPast] = field(default_factory=dict)
    trial_costs: Mapping[int, float | None] = field(default_factory=dict)
    """Mean cost of a trial by target; None for one that ran and told none."""
    failed: frozenset[int] = frozenset()
    """Scenarios in whose last run any trial failed."""
    reaches_back: bool = True
    """Whether all runs of the project were looked at."""

    def arm(self, target: int, model: str) -> ArmPast:
        """Return the suite's runs on a target with a model; no model is what the target took last."""
        return _found(self.arms, target, model) or ArmPast()

    def target(self, target: int, model: str) -> TargetPast:
        """Return the runs of any suite on a target with a model, likewise."""
        return _found(self.targets, target, model) or TargetPast()


def _found(arms: Mapping[Arm, Found], target: int, model: str) -> Found | None:
    if (target, model) in arms or model:
        return arms.get((target, model))
    # The newest comes first.
    return next((each for arm, each in arms.items() if arm[0] == target), None)


def past_of(project: int, suite: int, scenarios: Sequence[int], targets: Collection[int] = ()) -> Past:
    """Return what the last runs tell of these scenarios of a suite on these targets, on all without any.

    Three queries, each by index.
    """
    looked_at = [PastRun(*row) for row in newest_runs(project)]
    counted = [run for run in looked_at if run.counts]
    of_suite = [run for run in counted if run.suite == suite]
    chosen = [run for run in of_suite if not targets or run.target in targets]
    own, lately = _last(chosen, _share(chosen)), _last(counted, OF_ANY_SUITE)
    last = of_suite[0] if of_suite else None
    whole = _keys([*own, *lately])
    measured = by_scenario(_keys([*own, *of_suite[:1]]), tuple(scenarios), last.pk if last else 0)
    rows = [MeasuredScenario(*row) for row in measured]
    wholes = {(run, name): (mean, n) for run, name, mean, n in of_runs(whole)}
    return Past(
        arms={arm: _arm(arm, runs, rows, wholes) for arm, runs in _by_arm(own).items()},
        targets={arm: _target(runs, wholes) for arm, runs in _by_arm(lately).items()},
        trial_costs=_trial_costs(lately),
        failed=frozenset(row.scenario for row in rows if row.failed_last),
        reaches_back=len(looked_at) < LOOKED_AT,
    )


def _last(runs: Iterable[PastRun], each: int) -> list[PastRun]:
    """Return the last runs of each target and model, of runs that come newest first."""
    return [run for of_arm in _by_arm(runs).values() for run in of_arm[:each]]


def _share(runs: Iterable[PastRun]) -> int:
    """Return how many runs of each target and model count, of a suite's."""
    return min(LAST, max(FEWEST, MOST // (len({run.arm for run in runs}) or 1)))


def _by_arm(runs: Iterable[PastRun]) -> dict[Arm, list[PastRun]]:
    found: dict[Arm, list[PastRun]] = {}
    for run in runs:
        found.setdefault(run.arm, []).append(run)
    return found


def _keys(runs: Iterable[PastRun]) -> tuple[int, ...]:
    return tuple(sorted({run.pk for run in runs}))


Wholes = Mapping[tuple[int, str], tuple[float, int]]
"""Mean and number of scenarios by run and measure."""


def _arm(arm: Arm, runs: Sequence[PastRun], rows: Iterable[MeasuredScenario], wholes: Wholes) -> ArmPast:
    scenarios: dict[str, dict[int, RunAggregate]] = {}
    for row in rows:
        if (row.target, row.model) == arm:
            scenarios.setdefault(row.name, {})[row.scenario] = row.over_runs
    whole = {name: found for name in MEASURES if (found := _whole(runs, name, wholes))}
    return ArmPast(scenarios, whole, _surcharge(runs, wholes))


def _surcharge(runs: Iterable[PastRun], wholes: Wholes) -> float:
    """Return what runs cost over what their agents did; a run's own sum has its judges in it, a trial's has not."""
    told = [
        (run.cost_usd, wholes[run.pk, COST][0] * run.done)
        for run in runs
        if run.cost_usd is not None and (run.pk, COST) in wholes
    ]
    agents = sum(cost for _, cost in told)
    return max(1.0, sum(cost for cost, _ in told) / agents) if agents else 1.0


def _whole(runs: Iterable[PastRun], name: str, wholes: Wholes) -> RunAggregate | None:
    """Return the runs' means; a run of less than half of the scenarios is of chosen ones, and no sample of the suite."""
    measured = [wholes[run.pk, name] for run in runs if (run.pk, name) in wholes]
    most = max((n for _, n in measured), default=0)
    found = [(mean, n) for mean, n in measured if 2 * n >= most]
    if not found:
        return None
    return RunAggregate(
        runs=len(found),
        n=sum(n for _, n in found),
        total=sum(mean * n for mean, n in found),
        means=sum(mean for mean, _ in found),
        squares=sum(mean * mean for mean, _ in found),
    )


def _target(runs: Sequence[PastRun], wholes: Wholes) -> TargetPast:
    costs = [run.cost_usd / run.done for run in runs if run.cost_usd is not None]
    seconds = [wholes[run.pk, SECONDS][0] for run in runs if (run.pk, SECONDS) in wholes]
    return TargetPast(
        len(runs), RunAggregate.of(costs) if costs else None, RunAggregate.of(seconds) if seconds else None
    )


def _trial_costs(runs: Iterable[PastRun]) -> dict[int, float | None]:
    found: dict[int, list[PastRun]] = {}
    for run in runs:
        found.setdefault(run.target, []).append(run)
    return {target: _trial_cost(each) for target, each in found.items()}


def _trial_cost(runs: Iterable[PastRun]) -> float | None:
    told = [(run.cost_usd, run.done) for run in runs if run.cost_usd is not None]
    return sum(cost for cost, _ in told) / sum(done for _, done in told) if told else None


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
