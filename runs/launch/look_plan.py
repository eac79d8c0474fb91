"""Say how many trials runs until a verdict take and what they cost: expected if nothing changed, and at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalhub.lib.numbers import counted, money
from runs.compare.baselines import pinned_of
from runs.launch.estimate import RunEstimate
from runs.launch.looks import with_looks
from runs.launch.request import Request
from runs.models import Run
from runs.models.run import MOSTLY_MEASURED, NOT_CONFIRMING, RunState

USUAL_SHARE = 0.75
"""The share of the most trials that runs until a verdict take where nothing has changed, as simulations have it."""


@dataclass(frozen=True)
class LookPlan:
    """Trials and cost of runs until a verdict, all runs together."""

    first: int
    expected: float
    """About as many if nothing has changed (`USUAL_SHARE`)."""
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
    """Return the plan of a request's looks; None for other requests. Up to two queries a run."""
    options = with_looks(request.options)
    if not options.until_decided or not runs:
        return None
    first, most = options.trials, options.max_trials or options.trials
    is_paired = len(request.guidance) > 1
    lacks_baseline = [
        not is_paired and not _has_baseline(estimate, options.baseline, request.branch) for estimate in runs
    ]
    expected = [float(first) if lacks else max(float(first), USUAL_SHARE * most) for lacks in lacks_baseline]
    costs = [estimate.cost(1) for estimate in runs]
    known = [cost.expected for cost in costs if cost is not None]
    means = list(zip(known, expected, strict=True)) if len(known) == len(runs) else []
    return LookPlan(
        sum(len(estimate.run.scenarios) * first for estimate in runs),
        sum(len(estimate.run.scenarios) * n for estimate, n in zip(runs, expected, strict=True)),
        sum(len(estimate.run.scenarios) * most for estimate in runs),
        sum(cost * n for cost, n in means) if means else None,
        sum(known) * most if means else None,
        sum(lacks_baseline),
    )


def _has_baseline(estimate: RunEstimate, choice: str, branch: str) -> bool:
    """Return whether there is a run that the planned one will likely be compared with."""
    planned = estimate.run
    if choice.isdecimal():
        return True
    suite = planned.suite_version.suite_id
    if not choice and pinned_of(suite, planned.target.pk, branch):
        return True
    line = Run.objects.filter(
        MOSTLY_MEASURED,
        NOT_CONFIRMING,
        suite=suite,
        target=planned.target.pk,
        model=planned.model,
        state=RunState.FINISHED,
        error="",
        is_experiment=False,
    )
    return line.exists()
