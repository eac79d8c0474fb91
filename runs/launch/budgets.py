"""Compares a plan's estimated cost with its budget."""

from __future__ import annotations

from collections.abc import Sequence

from evalhub.lib.numbers import money
from evalhub.teams.models import Project
from evaluators.statistics.estimates import sum_of_estimates
from runs.compare.measure_changes import smallest_of_pass_rate
from runs.launch.estimate import PlanEstimate, estimate_plan
from runs.launch.request import PlannedRun
from runs.launch.run_history import read_history
from runs.models.run_options import RunOptions
from runs.results.spending import spent_this_month


def estimates_of(project: Project, planned: Sequence[PlannedRun], *, judged: bool) -> list[PlanEstimate]:
    """Return the estimate of each suite's runs of a plan. Three queries for each suite."""
    suites = dict.fromkeys(each.run.suite_id for each in planned)
    of_suites = [[each for each in planned if each.run.suite_id == suite] for suite in suites]
    return [_estimate(project, runs, judged=judged) for runs in of_suites]


def _estimate(project: Project, planned: Sequence[PlannedRun], *, judged: bool) -> PlanEstimate:
    scenarios = sorted({scenario.scenario_id for each in planned for scenario in each.scenarios})
    targets = {each.run.target_id for each in planned}
    history = read_history(project.pk, planned[0].run.suite_id, scenarios, targets)
    return estimate_plan(planned, history, judged=judged, smallest=smallest_of_pass_rate(project))


def warn_over_budget(project: Project, planned: Sequence[PlannedRun], options: RunOptions) -> str:
    """Return a warning if the plan's estimated cost is above a budget, its own or the month's, else an empty text."""
    if options.max_usd is None and project.month_usd is None:
        return ""
    estimates = estimates_of(project, planned, judged=options.judge)
    costs = [each.chosen.cost for each in estimates if each.chosen.cost]
    expected = sum_of_estimates(costs).expected if costs else None
    return budget_warning(expected, options.max_usd) or month_warning(project, expected)


def month_warning(project: Project, expected: float | None) -> str:
    """Return a warning if an expected cost is above what is left of the project's month, else an empty text."""
    if project.month_usd is None or expected is None:
        return ""
    left = max(0.0, project.month_usd - spent_this_month(project.pk))
    if expected <= left:
        return ""
    return (
        f"The estimated cost of {money(expected)} is above the {money(left)} that are left of the project's budget"
        " this month: the last trials may not run."
    )


def budget_warning(expected: float | None, max_usd: float | None) -> str:
    """Return a warning if an expected cost is above a budget, else an empty text."""
    if max_usd is None or expected is None or expected <= max_usd:
        return ""
    return (
        f"The estimated cost of {money(expected)} is above the budget of {money(max_usd)}: "
        "the last trials may not run."
    )
