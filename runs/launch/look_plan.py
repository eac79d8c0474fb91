"""Say how many trials runs until a verdict take and what they cost: expected if nothing changed, and at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg

from evalhub.lib.numbers import counted, money
from evaluators.statistics.expected_looks import expected_trials
from runs.compare.baselines import pinned_of
from runs.launch.estimate import RunEstimate
from runs.launch.looks import with_looks
from runs.launch.request import Request
from runs.launch.run_history import PASS
from runs.models import Run, RunMeasure
from runs.models.run import MOSTLY_MEASURED, NOT_CONFIRMING, RunState

UNKNOWN_RATE = 0.8
"""The pass rate of a scenario that has not run here."""


@dataclass(frozen=True)
class LookPlan:
    """Trials and cost of runs until a verdict, all runs together."""

    first: int
    expected: float
    """The mean if nothing has changed."""
    greatest: int
    expected_usd: float | None
    """None if the cost of a run is unknown."""
    greatest_usd: float | None
    without_baseline: int = 0
    """Runs that stop after the first look, because they have no baseline."""

    @property
    def sentence(self) -> str:
        """The numbers in one or two sentences."""
        cost = ""
        if self.expected_usd is not None and self.greatest_usd is not None:
            cost = f" It costs about {money(self.expected_usd)}, at most {money(self.greatest_usd)}."
        alone = ""
        if self.without_baseline:
            alone = (
                f" {counted(self.without_baseline, 'run')} without a baseline to compare with"
                f" {'stop' if self.without_baseline > 1 else 'stops'} after the first look."
            )
        return (
            f"Until a verdict: {counted(self.first, 'trial')} at the first look, about {self.expected:.0f} if nothing"
            f" has changed, at most {self.greatest}.{cost}{alone}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for the command line."""
        return {
            "first": self.first,
            "expected": round(self.expected, 1),
            "greatest": self.greatest,
            "expected_usd": self.expected_usd,
            "greatest_usd": self.greatest_usd,
        }


def look_plan(runs: Sequence[RunEstimate], request: Request) -> LookPlan | None:
    """Return the plan of a request's looks by past pass rates; None for other requests. Up to three queries a run."""
    options = with_looks(request.options)
    if not options.until_decided or not runs:
        return None
    first, most = options.trials, options.max_trials or options.trials
    is_paired = len(request.guidance) > 1
    expected, alone = [], 0
    for estimate in runs:
        baseline = 0 if is_paired else _baseline_trials(estimate, options.baseline, request.branch)
        if baseline is None:
            alone += 1
        expected.append(
            float(first)
            if baseline is None
            else expected_trials(_rates(estimate), first, most, baseline).expected
        )
    costs = [estimate.cost(1) for estimate in runs]
    known = [cost.expected for cost in costs if cost is not None]
    means = list(zip(known, expected, strict=True)) if len(known) == len(runs) else []
    return LookPlan(
        sum(len(estimate.run.scenarios) * first for estimate in runs),
        sum(len(estimate.run.scenarios) * n for estimate, n in zip(runs, expected, strict=True)),
        sum(len(estimate.run.scenarios) * most for estimate in runs),
        sum(cost * n for cost, n in means) if means else None,
        sum(known) * most if means else None,
        alone,
    )


def _rates(estimate: RunEstimate) -> tuple[float, ...]:
    """Return each scenario's past pass rate, rounded so that equal plans are simulated once."""
    aggregates = estimate.history.scenarios.get(PASS, {})
    known = (aggregates.get(each.scenario_id) for each in estimate.run.scenarios)
    return tuple(round(each.mean, 2) if each else UNKNOWN_RATE for each in known)


def _baseline_trials(estimate: RunEstimate, choice: str, branch: str) -> int | None:
    """Return the trials of each scenario of the run's likely baseline, at least 1; None without one."""
    planned = estimate.run
    if choice.isdecimal():
        baseline: int | None = int(choice)
    else:
        pin = pinned_of(planned.suite_version.suite_id, planned.target.pk, branch) if not choice else None
        line = Run.objects.filter(
            MOSTLY_MEASURED,
            NOT_CONFIRMING,
            suite=planned.suite_version.suite_id,
            target=planned.target.pk,
            model=planned.model,
            state=RunState.FINISHED,
            error="",
            is_experiment=False,
        )
        newest = line.order_by("-pk").values_list("pk", flat=True)
        baseline = pin.run_id if pin else newest.first()
    rollups = RunMeasure.objects.filter(run=baseline, measure__layer="trial", measure__name="pass", n__gt=0)
    mean = rollups.exclude(scenario=None).aggregate(mean=Avg("n"))["mean"] if baseline else None
    return max(1, round(mean)) if mean else None
