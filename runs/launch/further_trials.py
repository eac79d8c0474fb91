"""Say how many trials a request's runs may take beyond the first, and what they cost: looks, and scenarios that run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from evalhub.lib.numbers import format_count, format_money, format_percent
from evaluators.statistics.retest import IN_TURN, MOST, most_retested, share_named
from runs.compare.baselines import pinned_of
from runs.compare.retests import asks_retest
from runs.launch.estimate import RunEstimate
from runs.launch.request import Request
from runs.launch.selection import with_looks
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
            cost = f" It costs about {format_money(self.expected_usd)}, at most {format_money(self.greatest_usd)}."
        alone = ""
        if self.without_baseline:
            alone = (
                f" {format_count(self.without_baseline, 'run')} without a baseline to compare with"
                f" {'stop' if self.without_baseline > 1 else 'stops'} after the first look."
            )
        return (
            f"Until a verdict: {format_count(self.first, 'trial')} at the first look, about {self.expected:.0f} if nothing"
            f" has changed, at most {self.greatest}.{cost}{alone}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for the command line."""
        kept = {name: value for name, value in asdict(self).items() if name != "without_baseline"}
        return kept | {"expected": round(self.expected, 1)}


def look_plan(runs: Sequence[RunEstimate], request: Request) -> LookPlan | None:
    """Return the plan of a request's looks; None for other requests. Up to two queries a run."""
    options = with_looks(request.options)
    if not options.until_decided or not runs:
        return None
    first, most = options.trials, options.max_trials or options.trials
    is_paired = len(request.guidance) > 1
    lacks_baseline = [
        not (is_paired or options.baseline.isdecimal()) and not _has_baseline(each, request) for each in runs
    ]
    expected = [float(first) if lacks else max(float(first), USUAL_SHARE * most) for lacks in lacks_baseline]
    costs = [estimate.cost(1) for estimate in runs]
    known = [cost.expected for cost in costs if cost is not None]
    means = list(zip(known, expected, strict=True)) if len(known) == len(runs) else []
    return LookPlan(
        sum(len(estimate.planned.scenarios) * first for estimate in runs),
        sum(len(estimate.planned.scenarios) * n for estimate, n in zip(runs, expected, strict=True)),
        sum(len(estimate.planned.scenarios) * most for estimate in runs),
        sum(cost * n for cost, n in means) if means else None,
        sum(known) * most if means else None,
        sum(lacks_baseline),
    )


def _has_baseline(estimate: RunEstimate, request: Request) -> bool:
    """Return whether there is a run that the planned one will likely be compared with."""
    run = estimate.planned.run
    line = Run.objects.filter(
        MOSTLY_MEASURED,
        NOT_CONFIRMING,
        suite=run.suite_id,
        target=run.target_id,
        model=run.model,
        state=RunState.FINISHED,
        error="",
        is_experiment=False,
    )
    pinned = not request.options.baseline and pinned_of(run.suite_id, run.target_id, run.branch)
    return bool(pinned) or line.exists()


@dataclass(frozen=True)
class RetestPlan:
    """The most fresh trials of a plan's runs, all together."""

    greatest: int
    greatest_usd: float | None
    """None if the cost of a run is unknown."""
    named: float | None = None
    """In which share of cases a scenario that breaks is named, as the mean over scenarios; None of arms in turn."""
    stopped_at_usd: float | None = None
    """The budget, if first trials and these may cost more."""

    @property
    def sentence(self) -> str:
        """The numbers in a sentence."""
        cost = "" if self.greatest_usd is None else f", {format_money(self.greatest_usd)}"
        budget = self.stopped_at_usd
        stopped = "" if budget is None else f" The budget of {format_money(budget)} may stop them."
        return (
            "Scenarios that look worse run again in the same run: at most"
            f" {format_count(self.greatest, 'more trial')}{cost}, none if nothing broke.{self._finds}{stopped}"
        )

    @property
    def _finds(self) -> str:
        if self.named is None:
            return ""
        return f" A scenario that breaks is named at once in {format_percent(self.named)} of cases."

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for the command line."""
        return {name: value for name, value in asdict(self).items() if name != "stopped_at_usd"}


def retest_plan(
    estimates: Sequence[RunEstimate], request: Request, looks: LookPlan | None = None
) -> RetestPlan | None:
    """Return the most fresh trials of a request's runs; None if no scenario may run again. No query.

    One may where evalhub starts the agent and something ran before, or beside it as the first arm.
    """
    options = request.options
    is_test = len(request.guidance) > 1
    if is_test and not options.fail_on_regression:
        return None
    most = options.max_trials or options.trials if looks else options.trials
    numbers = []
    for each in estimates:
        run = each.planned.run
        if not asks_retest(options, run.suite, run.target):
            continue
        scenarios = len(each.planned.scenarios)
        if is_test:
            numbers.append((each, min(IN_TURN * scenarios, max(3 * IN_TURN, scenarios * most))))
        elif each.is_known or options.baseline:
            numbers.append((each, min(MOST * scenarios, most_retested(scenarios * most))))
    if not numbers:
        return None
    again, first = _cost(numbers), _cost([(each, len(each.planned.scenarios) * most) for each in estimates])
    budget = options.max_usd
    is_short = budget is not None and again is not None and first is not None and again + first > budget
    named = None if is_test else _share_named([each for each, _ in numbers], most)
    return RetestPlan(sum(n for _, n in numbers), again, named, budget if is_short else None)


def _share_named(estimates: Iterable[RunEstimate], trials: int) -> float | None:
    """Return in which share of cases a broken scenario is named, over all that ran before."""
    shares = [share_named(old, trials) for each in estimates if each.is_known for old in each.old_passes]
    return fmean(shares) if shares else None


def _cost(numbers: Iterable[tuple[RunEstimate, int]]) -> float | None:
    total = 0.0
    for estimate, n in numbers:
        cost = estimate.cost(1)
        if cost is None:
            return None
        total += cost.expected / len(estimate.planned.scenarios) * n
    return total
