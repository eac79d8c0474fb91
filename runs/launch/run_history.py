"""Recent runs by target and model: their cost, time and outcomes, to estimate the next one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db.models import Count, F, Max, Q, QuerySet, Sum

from evaluators.statistics.descriptive import RunAggregate
from runs.models import Measure, Run, RunMeasure
from runs.models.run import MAINLINE, RunState, Trigger

LAST, FEWEST = 20, 5
"""Most and fewest runs that are used for each target and model; fewer if there are many of these."""
MOST = 30
"""Most runs of a suite that are used over all targets and models, beyond the fewest of each."""
OF_ANY_SUITE = 10
"""Runs of a target and model that are used, of any suite."""


History = TypeVar("History")


@dataclass(frozen=True)
class ArmHistory:
    """Recent runs of a suite on one target with one model."""

    scenarios: Mapping[str, Mapping[int, RunAggregate]] = field(default_factory=dict)
    """By measure and scenario."""
    aggregates: Mapping[str, RunAggregate] = field(default_factory=dict)
    """Means over each run's scenarios, by measure."""
    surcharge: float = 1.0
    """Cost of a trial with its judges, as a multiple of the agent's cost."""
    pass_rates: Sequence[float] = ()
    """Of each run with at least half of the scenarios, 0 to 1, newest first."""

    @property
    def runs(self) -> int:
        """Number of runs with a scored trial."""
        return self.aggregates[PASS].runs if PASS in self.aggregates else 0


@dataclass(frozen=True)
class TargetHistory:
    """Recent runs of any suite on one target with one model; each run is one value."""

    runs: int = 0
    cost: RunAggregate | None = None
    """Mean cost of a trial; None if no run reported a cost."""
    seconds: RunAggregate | None = None


@dataclass(frozen=True)
class RunHistory:
    """Recent runs that help to estimate a suite's next run."""

    arms: Mapping[Arm, ArmHistory] = field(default_factory=dict)
    targets: Mapping[Arm, TargetHistory] = field(default_factory=dict)
    trial_costs: Mapping[int, float | None] = field(default_factory=dict)
    """Mean cost of a trial by target; None for a target that reported no cost."""
    failed: frozenset[int] = frozenset()
    """Scenarios with a failed trial in their last run."""
    finished: Sequence[Run] = ()
    """The suite's runs with results, newest first, on any target and branch."""
    reaches_back: bool = True
    """Whether all runs of the project were read."""

    def arm(self, target: int, model: str) -> ArmHistory:
        """Return the suite's runs on a target with a model; an empty model is the target's latest."""
        return _find(self.arms, target, model) or ArmHistory()

    def target(self, target: int, model: str) -> TargetHistory:
        """Return the runs of any suite on a target with a model, likewise."""
        return _find(self.targets, target, model) or TargetHistory()


def _find(arms: Mapping[Arm, History], target: int, model: str) -> History | None:
    if (target, model) in arms or model:
        return arms.get((target, model))
    # Newest first.
    return next((each for arm, each in arms.items() if arm[0] == target), None)


def read_history(
    project: int, suite: int, scenarios: Sequence[int], targets: Collection[int] = ()
) -> RunHistory:
    """Return the recent runs of these scenarios of a suite on these targets, by default on all.

    Three queries, all by index.
    """
    finished = Run.objects.filter(project=project, state=RunState.FINISHED).order_by("-pk")
    recent = list(finished.only(*_COLUMNS)[:MOST_RUNS])
    counted = [
        run for run in recent if run.branch in MAINLINE and run.trigger not in APART and _done(run) > 0
    ]
    of_suite = [run for run in counted if run.suite_id == suite]
    chosen = [run for run in of_suite if not targets or run.target_id in targets]
    of_targets, lately = _last(chosen, _share(chosen)), _last(counted, OF_ANY_SUITE)
    last = of_suite[0] if of_suite else None
    keys = _keys([*of_targets, *lately])
    measured: dict[Arm, dict[str, dict[int, RunAggregate]]] = {}
    failed = set[int]()
    for target, model, scenario, name, *sums, latest in measured_by_scenario(
        _keys([*of_targets, *of_suite[:1]]), tuple(scenarios), last.pk if last else 0
    ):
        measured.setdefault((target, model), {}).setdefault(name, {})[scenario] = RunAggregate(*sums)
        if name == PASS and latest is not None and latest < 1.0:
            failed.add(scenario)
    run_means = {(run, name): (mean, n) for run, name, mean, n in of_runs(keys)}
    return RunHistory(
        arms={arm: _arm(measured.get(arm, {}), runs, run_means) for arm, runs in _by_arm(of_targets).items()},
        targets={arm: _target(runs, run_means) for arm, runs in _by_arm(lately).items()},
        trial_costs=_trial_costs(lately),
        failed=frozenset(failed),
        finished=tuple(
            run for run in recent if run.suite_id == suite and _done(run) and run.trigger not in APART
        ),
        reaches_back=len(recent) < MOST_RUNS,
    )


def _last(runs: Iterable[Run], most: int) -> list[Run]:
    """Return the last runs of each target and model; `runs` has the newest first."""
    return [run for of_arm in _by_arm(runs).values() for run in of_arm[:most]]


def _share(runs: Iterable[Run]) -> int:
    """Return how many runs of each target and model to use."""
    return min(LAST, max(FEWEST, MOST // (len({(run.target_id, run.model) for run in runs}) or 1)))


def _by_arm(runs: Iterable[Run]) -> dict[Arm, list[Run]]:
    by_arm: dict[Arm, list[Run]] = {}
    for run in runs:
        by_arm.setdefault((run.target_id, run.model), []).append(run)
    return by_arm


def _keys(runs: Iterable[Run]) -> tuple[int, ...]:
    return tuple(sorted({run.pk for run in runs}))


RunMeans = Mapping[tuple[int, str], tuple[float, int]]
"""Mean and number of scenarios by run and measure."""


def _arm(
    scenarios: Mapping[str, Mapping[int, RunAggregate]], runs: Sequence[Run], run_means: RunMeans
) -> ArmHistory:
    aggregates = {name: aggregate for name in MEASURES if (aggregate := _aggregate(runs, name, run_means))}
    pass_rates = [mean for mean, _ in _whole(runs, PASS, run_means)]
    return ArmHistory(scenarios, aggregates, _surcharge(runs, run_means), pass_rates)


def _surcharge(runs: Iterable[Run], run_means: RunMeans) -> float:
    """Return the ratio of the runs' cost to their agents' cost; only a run's cost includes its judges."""
    costs = [
        (cost, run_means[run.pk, COST][0] * _done(run))
        for run in runs
        if (cost := _first_usd(run)) is not None and (run.pk, COST) in run_means
    ]
    agents = sum(cost for _, cost in costs)
    return max(1.0, sum(cost for cost, _ in costs) / agents) if agents else 1.0


def _whole(runs: Iterable[Run], name: str, run_means: RunMeans) -> list[tuple[float, int]]:
    """Return mean and scenarios of each run; runs of less than half of the scenarios aren't a sample of the suite."""
    measured = [run_means[run.pk, name] for run in runs if (run.pk, name) in run_means]
    most = max((n for _, n in measured), default=0)
    return [(mean, n) for mean, n in measured if 2 * n >= most]


def _aggregate(runs: Iterable[Run], name: str, run_means: RunMeans) -> RunAggregate | None:
    used = _whole(runs, name, run_means)
    if not used:
        return None
    return RunAggregate(
        runs=len(used),
        n=sum(n for _, n in used),
        total=sum(mean * n for mean, n in used),
        means=sum(mean for mean, _ in used),
        squares=sum(mean * mean for mean, _ in used),
    )


def _target(runs: Sequence[Run], run_means: RunMeans) -> TargetHistory:
    costs = [cost / _done(run) for run in runs if (cost := _first_usd(run)) is not None]
    seconds = [run_means[run.pk, SECONDS][0] for run in runs if (run.pk, SECONDS) in run_means]
    return TargetHistory(
        len(runs), RunAggregate.of(costs) if costs else None, RunAggregate.of(seconds) if seconds else None
    )


def _trial_costs(runs: Iterable[Run]) -> dict[int, float | None]:
    by_target: dict[int, list[tuple[float, int]]] = {}
    for run in runs:
        costs = by_target.setdefault(run.target_id, [])
        if (cost := _first_usd(run)) is not None:
            costs.append((cost, _done(run)))
    return {
        target: sum(cost for cost, _ in costs) / sum(done for _, done in costs) if costs else None
        for target, costs in by_target.items()
    }


MOST_RUNS = 300
"""Number of the project's newest finished runs that are read."""
APART = (Trigger.CONFIRM, Trigger.IMPORT)
"""Triggers of runs that are not used: reruns of selected scenarios, and imported results."""
PASS, COST, SECONDS = "pass", "cost_usd", "seconds"
MEASURES = (PASS, COST, SECONDS)

Arm = tuple[int, str]
"""The key of a target, and a model."""


def _first_usd(run: Run) -> float | None:
    """Return the cost of a run's first trials, judges included; None if unknown."""
    return None if run.cost_usd is None else run.cost_usd - run.retest_usd


def _done(run: Run) -> int:
    """Return a run's number of finished trials, including errors."""
    return run.passed + run.failed + run.errors


# Only columns: with an expression Django would convert every row.
_COLUMNS = (
    *("pk", "suite_id", "target_id", "model", "branch", "trigger", "cost_usd", "retest_usd"),
    *("passed", "failed", "errors"),
)


def measured_by_scenario(
    runs: tuple[int, ...], scenarios: tuple[int, ...], last: int
) -> QuerySet[RunMeasure, Any]:
    """Return target, model, scenario, measure, the sums of a `RunAggregate`, and the mean in the suite's `last` run."""
    # All three columns are in one index: a run has ten times as many measures as needed.
    rows = RunMeasure.objects.filter(run__in=runs, scenario__in=scenarios, measure__in=_used_measures())
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
    return rows.order_by().values_list(*groups).annotate(**sums)


def of_runs(runs: tuple[int, ...]) -> QuerySet[RunMeasure, Any]:
    """Return run, measure, mean over its scenarios, and number of scenarios."""
    rows = RunMeasure.objects.filter(run__in=runs, scenario=None, measure__in=_used_measures())
    return rows.values_list("run_id", "measure__name", "mean", "n")


def _used_measures() -> QuerySet[Measure, Any]:
    return Measure.objects.filter(layer="trial", name__in=MEASURES).values("pk")
