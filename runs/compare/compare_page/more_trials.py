"""The page that plans and starts further trials of two compared runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evalhub.lib.numbers import format_count
from evalhub.teams.access import ProjectRequest, project_page
from evaluators.statistics import verdict_sentences
from evaluators.statistics.looks import first_size
from evaluators.statistics.regression import detectable_with
from runs.compare.compare_page.comparison import ComparedScenario, compare_two_runs
from runs.compare.compare_page.matrix import ChosenRuns, chosen_runs
from runs.compare.differences import LABELS, fingerprint_differences
from runs.compare.looks import Extension, extensions_of
from runs.compare.measure_changes import (
    HEADLINE,
    PASS,
    RunComparison,
    compare_with_first,
    smallest_of_pass_rate,
)
from runs.engine.retrying import extend_runs
from runs.errors import RequestError
from runs.launch.estimate import PlanEstimate, estimate_plan
from runs.launch.request import MOST_MORE, PlannedRun, plan_more_trials
from runs.launch.run_history import read_history
from runs.models import Run

USUAL = 5
"""Further trials of each scenario that are proposed."""


@dataclass(frozen=True)
class MorePlan:
    """The plan of further trials, or why there is none."""

    planned: Sequence[PlannedRun] = ()
    estimate: PlanEstimate | None = None
    now: str = ""
    """The smallest change of the pass rate that the comparison can find now; empty if unknown."""
    then: str = ""
    """The same with the further trials, if the pass rates stay as they are."""
    problem: str = ""
    id: str = ""

    @property
    def trials(self) -> int:
        return sum(run.trial_count for run in self.planned)


@dataclass(frozen=True)
class MorePage:
    """Content of the page."""

    chosen: ChosenRuns
    scenarios: list[ComparedScenario]
    """Scenarios that can get more trials in both runs."""
    keys: list[str]
    """The selected ones."""
    trials: int | None
    """None if the given number is none."""
    plan: MorePlan
    until_decided: bool = False
    """Whether `trials` are the most, and are added in looks."""

    @property
    def first(self) -> int:
        """Return the trials of each scenario that are queued at once."""
        return first_size(self.trials or 1) if self.until_decided else self.trials or 0

    @property
    def tools(self) -> str:
        """Return both runs' tool versions if they differ: a worker has one of them."""
        base, new = self.chosen.runs
        differing = (
            difference
            for difference in fingerprint_differences(base, new)
            if difference.label == LABELS["tool_version"]
        )
        return next(
            (
                f"{difference.before or 'unknown'} and {difference.after or 'unknown'}"
                for difference in differing
            ),
            "",
        )


def _more_page(request: ProjectRequest, query: QueryDict) -> MorePage:
    chosen = chosen_runs(request.access.project, query.get("runs", ""))
    if len(chosen.runs) != 2:
        raise Http404
    base, new = chosen.runs
    extensions = extensions_of(chosen.runs)
    compared = compare_two_runs(base, new, extensions)
    scenarios = [scenario for scenario in compared.scenarios if scenario.is_comparable]
    asked = set(query.getlist("scenario"))
    keys = [
        scenario.key
        for scenario in scenarios
        if (scenario.key in asked if "scenario" in query else scenario.change in ("worse", "better"))
    ]
    trials, until_decided = _number(query.get("trials", str(USUAL))), bool(query.get("until_decided"))
    plan = _plan(request, chosen.runs, extensions, keys, trials, until_decided=until_decided)
    return MorePage(chosen, scenarios, keys, trials, plan, until_decided)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MOST_MORE else None


def _plan(
    request: ProjectRequest,
    runs: Sequence[Run],
    extensions: Sequence[Extension],
    keys: list[str],
    trials: int | None,
    *,
    until_decided: bool,
) -> MorePlan:
    project = request.access.project
    if trials is None:
        return MorePlan(problem=f"Enter a whole number of trials from 1 to {MOST_MORE}.", id="request/trials")
    try:
        planned = plan_more_trials(project, runs, keys, first_size(trials) if until_decided else trials)
    except RequestError as error:
        return MorePlan(problem=str(error), id=error.id)
    first = planned[0]
    history = read_history(
        *(project.pk, first.run.suite_id, [each.scenario_id for each in first.scenarios]),
        {each.run.target_id for each in planned},
    )
    judged = any(run.options.get("judge", True) for run in runs)
    smallest = smallest_of_pass_rate(project)
    estimate = estimate_plan(planned, history, judged=judged, smallest=smallest)
    (compared,) = compare_with_first(runs[0], runs[1:], HEADLINE, extensions=extensions)
    now, then = _detectable(compared, keys, trials)
    return MorePlan(planned, estimate, now, then)


def _detectable(compared: RunComparison, keys: Collection[str], more: int) -> tuple[str, str]:
    """Return the smallest detectable change of the pass rate now and with more trials, as texts; empty for none."""
    change = compared.pass_rate
    if change is None:
        return "", ""
    _, before, after = compared.samples[PASS]
    then = detectable_with(change, before, after, more, keys)
    now, later = (
        "" if effect is None else verdict_sentences.describe_size(change, effect, signed=False)
        for effect in (change.detectable, then)
    )
    return now, later


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("run")
def more_trials(request: ProjectRequest) -> HttpResponse:
    """Show the plan of further trials of two runs; start them if the start button was pressed."""
    is_post = request.method == "POST"
    page = _more_page(request, request.POST if is_post else request.GET)
    if "start" not in request.POST:
        wrong = page.plan.problem and is_post and not request.htmx
        return _show(request, page, status=422 if wrong else 200)
    if page.plan.problem:
        return _show(request, page, status=422)
    if request.POST.get("planned") != str(page.plan.trials):
        # The button showed another number: the user has not seen this plan.
        return _show(request, page, status=409)
    try:
        extend_runs(
            page.chosen.runs, page.keys, page.trials or 1, until_decided=page.until_decided, by=request.user
        )
    except RequestError as error:
        return _show(request, replace(page, plan=MorePlan(problem=str(error), id=error.id)), status=422)
    messages.success(request, f"Queued {format_count(page.plan.trials, 'more trial')}.")
    return redirect(f"{reverse('compare', args=[request.access.project.slug])}?runs={page.chosen.numbers}")


def _show(request: ProjectRequest, page: MorePage, *, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        "page": page,
        "plan": page.plan,
        "most": MOST_MORE,
        "has_changed": status == 409,
    }
    is_part = request.htmx and request.htmx.target == "plan"
    template = "compare/compare/_more_plan.html" if is_part else "compare/compare/more_trials.html"
    return render(request, template, context, status=status)
