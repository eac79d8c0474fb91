"""Say how many fresh trials a plan's runs may need at most, and what these cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evalhub.lib.numbers import counted, money, percent
from evaluators.statistics.retest import IN_TURN, MOST, most_retested, share_named
from runs.compare.retests import asks_retest
from runs.launch.estimate import RunEstimate
from runs.launch.look_plan import LookPlan
from runs.launch.request import Request


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
        cost = "" if self.greatest_usd is None else f", {money(self.greatest_usd)}"
        budget = self.stopped_at_usd
        stopped = "" if budget is None else f" The budget of {money(budget)} may stop them."
        return (
            "Scenarios that look worse run again in the same run: at most"
            f" {counted(self.greatest, 'more trial')}{cost}, none if nothing broke.{self._finds}{stopped}"
        )

    @property
    def _finds(self) -> str:
        if self.named is None:
            return ""
        return f" A scenario that breaks is named at once in {percent(self.named)} of cases."

    def to_json(self) -> dict[str, Any]:
        """Return the numbers for the command line."""
        return {"greatest": self.greatest, "greatest_usd": self.greatest_usd, "named": self.named}


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
        planned = each.run
        if not asks_retest(options, planned.suite_version.suite, planned.target):
            continue
        scenarios = len(planned.scenarios)
        if is_test:
            numbers.append((each, min(IN_TURN * scenarios, max(3 * IN_TURN, scenarios * most))))
        elif each.is_known or options.baseline:
            numbers.append((each, min(MOST * scenarios, most_retested(scenarios * most))))
    if not numbers:
        return None
    again, first = _cost(numbers), _cost([(each, len(each.run.scenarios) * most) for each in estimates])
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
        total += cost.expected / len(estimate.run.scenarios) * n
    return total
