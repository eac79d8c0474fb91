"""Views of a new run: form, plan and start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.views.decorators.http import require_http_methods

from evalhub.teams.access import Access, ProjectRequest, project_page
from evalhub.teams.models import Priority, Project
from evalhub.web.paging import key_of
from runs.compare.baselines import LAST_PASS
from runs.compare.measure_changes import smallest_of_pass_rate
from runs.compare.side_by_side import MOST_COMPARED
from runs.errors import RequestError
from runs.launch.command_line import as_command
from runs.launch.estimate import PlanEstimate, budget_warning, estimate_plan, line_targets, month_warning
from runs.launch.further_trials import LookPlan, RetestPlan, look_plan, retest_plan
from runs.launch.lift import has_skill
from runs.launch.new_run_page.forms import RunForm, edited_guidance, previous_choices
from runs.launch.new_run_page.run_choices import (
    SHOWN_CARDS,
    NamedChoice,
    RecentlyUsed,
    RunChoices,
    baselines_of,
    guidance_cards,
    read_recently_used,
    run_choices,
    scenario_choices,
    tag_choices,
    tier_choices,
)
from runs.launch.request import PlannedRun, find_unjudged_trials, plan, request_runs
from runs.launch.run_history import RunHistory, read_history
from runs.launch.selection import ChosenScenario, ProjectReader, UnjudgedTrials
from runs.models import Run
from runs.models.run import Trigger
from runs.models.run_options import RunOptions
from runs.workers.worker_registry import judges_of_workers
from scenarios.models import SuiteVersion

PICK, FAILED_LAST, ALL = "pick", "failed", "all"
"""A parameter that ticks the scenarios that failed in the last run, or unticks all."""


@dataclass(frozen=True)
class Plan:
    """The plan of a request, or its error."""

    runs: tuple[PlannedRun, ...] = ()
    estimate: PlanEstimate | None = None
    command: str = ""
    problem: str = ""
    id: str = ""
    warning: str = ""
    """About the budget; empty if the plan fits it."""
    looks: LookPlan | None = None
    """Of runs until a verdict."""
    retests: RetestPlan | None = None
    """None where no scenario may run again."""
    max_usd: float | None = None
    """The budget."""
    unjudged: UnjudgedTrials | None = None
    """The trials that nothing could judge."""

    @property
    def refusal(self) -> str:
        """Why the run can't start, shown beside the button; empty if it can."""
        return self.unjudged.refusal if self.unjudged else ""

    @property
    def expected_usd(self) -> float | None:
        """The mean cost of such plans; None if unknown."""
        if self.looks is not None:
            return self.looks.expected_usd
        cost = self.estimate.chosen.cost if self.estimate else None
        return cost.expected if cost else None

    @property
    def greatest_usd(self) -> float | None:
        """The cost that at most one of 40 such plans exceeds, or the budget if that is less; None if unknown."""
        if self.looks is not None:
            greatest = self.looks.greatest_usd
        else:
            cost = self.estimate.chosen.cost if self.estimate else None
            greatest = cost.high if cost else None
        if greatest is not None and self.retests is not None:
            greatest += self.retests.greatest_usd or 0.0
        return min((each for each in (greatest, self.max_usd) if each is not None), default=None)

    @property
    def is_capped(self) -> bool:
        """Whether the budget is what limits the cost."""
        return self.max_usd is not None and self.greatest_usd == self.max_usd

    @property
    def change(self) -> float | None:
        """The smallest change of the pass rate that the plan detects, with looks at their most trials, 0 to 1."""
        if self.estimate is None or self.looks is None:
            return self.estimate.chosen.change if self.estimate else None
        most = self.looks.greatest // sum(len(run.scenarios) for run in self.runs)
        changes = [each.change(most) for each in self.estimate.runs]
        return max((each for each in changes if each is not None), default=None)

    @property
    def trials(self) -> int:
        return sum(run.trial_count for run in self.runs)

    @property
    def release_problems(self) -> list[str]:
        """Why release rules can't be measured, a sentence for each suite."""
        return list(dict.fromkeys(run.release_problem for run in self.runs if run.release_problem))


@dataclass(frozen=True)
class NewRunPage:
    """Content of the new run page: form, choices and past runs."""

    project: Project
    offer: RunChoices
    reader: ProjectReader
    scenarios: Sequence[ChosenScenario]
    """All scenarios of the chosen suite."""
    past: RunHistory
    form: RunForm
    given: QueryDict
    recent: RecentlyUsed

    def plan(self) -> Plan:
        """Return the form's plan, with the error of an invalid request."""
        if not self.form.is_valid():
            return Plan(problem="Fix the errors in the form.", id="request/form")
        try:
            request = self.form.request()
            planned = plan(self.project, request, self.reader)
        except RequestError as error:
            return Plan(problem=str(error), id=error.id)
        smallest = smallest_of_pass_rate(self.project)
        estimate = estimate_plan(
            planned,
            self.past,
            judged=request.options.judge,
            smallest=smallest,
            line_targets=line_targets(planned, request, self.past),
        )
        guidance = self.offer.guidance_of(self.form.version.suite)
        cost = estimate.chosen.cost
        expected = cost.expected if cost else None
        warning = budget_warning(expected, request.options.max_usd) or month_warning(self.project, expected)
        command = as_command(self.form.asked, request, guidance, self.form.document_argument)
        looks = look_plan(estimate.runs, request)
        return Plan(
            planned,
            estimate,
            command,
            warning=warning,
            looks=looks,
            retests=retest_plan(estimate.runs, request, looks),
            max_usd=request.options.max_usd,
            unjudged=find_unjudged_trials(self.project, planned, request.options, judges_of_workers),
        )


def _new_run_page(
    access: Access, asked: QueryDict, files: MultiValueDict[str, Any], *, is_new: bool, replans: bool = False
) -> NewRunPage:
    """Return the page's content. Nine queries, and three more with a guidance document.

    With `replans` choices that belong to another suite are dropped: the suite has changed.
    """
    project = access.project
    offer = run_choices(project, now=timezone.now(), keep=asked.getlist("targets"))
    values = _with_defaults(asked, offer) if is_new else asked
    if is_new and "edit" in values:
        _fill_in_text(values, offer)
    if is_new and "descriptions_of" in values:
        _fill_in_descriptions(values, project)
    targets = [each.target for each in offer.targets]
    reader = ProjectReader(project, targets=targets, guidance=offer.defaults)
    version = offer.versions.get(values.get("suite", ""))
    scenarios = reader.scenarios(version) if version else ()
    chosen = {target.pk for target in targets if target.name in values.getlist("targets")}
    past = read_history(
        project.pk, version.suite_id if version else 0, [each.scenario_id for each in scenarios], chosen
    )
    if PICK in values:
        failed = [each.key for each in scenarios if each.scenario_id in past.failed]
        values = _narrow(values, failed if values[PICK] == FAILED_LAST else [])
    baselines = baselines_of(past, offer)
    if replans and version:
        values = _of_suite(values, offer, version, scenarios, baselines)
    recent = read_recently_used(project.pk)
    offered = {
        "only": scenario_choices(scenarios, past.failed),
        "tags": tag_choices(scenarios),
        "models": [NamedChoice(name) for name in recent.models],
        "run_tags": [NamedChoice(name) for name in recent.tags],
    }
    form = RunForm(offer, values, files, access=access, baselines=baselines, offered=offered)
    return NewRunPage(project, offer, reader, scenarios, past, form, values, recent)


def _narrow(asked: QueryDict, keys: Sequence[str]) -> QueryDict:
    """Return the values with these scenarios chosen and no other condition on them."""
    values = asked.copy()
    values.setlist("only", list(keys))
    for name in ("tags", "tier"):
        values.pop(name, None)
    return values


def _with_defaults(asked: QueryDict, offer: RunChoices) -> QueryDict:
    """Return the query's values with the form's defaults."""
    values = asked.copy()
    values.setdefault("suite", next(iter(offer.versions), ""))
    if (usual := offer.usual.get(values.get("suite", ""))) is not None:
        values.setdefault("targets", usual)
    version = offer.versions.get(values.get("suite", ""))
    values.setdefault("trials", str(version.config.get("trials", 1) if version else 1))
    values.setdefault("judge", "true")
    values.setdefault("retest", "true")
    values.setdefault("priority", Priority.NORMAL.label)
    return values


def _of_suite(
    asked: QueryDict,
    offer: RunChoices,
    version: SuiteVersion,
    scenarios: Sequence[ChosenScenario],
    baselines: Sequence[tuple[str, str]],
) -> QueryDict:
    """Return the values without scenarios, tags, guidance and baselines of other suites."""
    values = asked.copy()
    keys = {scenario.key for scenario in scenarios}
    tags = {tag for scenario in scenarios for tag in scenario.tags}
    values.setlist("only", [each for each in values.getlist("only") if each in keys])
    values.setlist("tags", [each for each in values.getlist("tags") if each in tags])
    guidance = {"", *(str(each.pk) for each in offer.guidance_of(version.suite))}
    values.setlist("guidance", [each for each in values.getlist("guidance") if each in guidance])
    if values.get("previous", "") not in dict(previous_choices(offer, version.suite.slug)):
        values["previous"] = ""
    if values.get("baseline_run", "") not in ("", LAST_PASS, *dict(baselines)):
        values["baseline_run"] = ""
    return values


def _fill_in_text(values: QueryDict, offer: RunChoices) -> None:
    """Put the text of the document to edit into the form: the named one, else the version's first."""
    version = offer.versions.get(values.get("suite", ""))
    base = edited_guidance(offer, version.suite_id, values.get("edit", "")) if version else None
    texts = {each["path"]: each["content"] for each in base.files} if base else {}
    path = values.get("document_path") or next(iter(texts), "")
    values["document_path"], values["document_text"] = path, texts.get(path, "")


def _fill_in_descriptions(values: QueryDict, project: Project) -> None:
    """Put the tool descriptions of a run that is rerun into the form. One query."""
    again = Run.objects.filter(project=project, pk=key_of(values.get("descriptions_of", "")) or 0).first()
    descriptions = RunOptions.model_validate(again.options).descriptions if again else None
    if descriptions:
        values["descriptions"] = yaml.safe_dump(
            descriptions.model_dump(exclude_defaults=True), sort_keys=False, allow_unicode=True
        )


@require_http_methods(["GET", "HEAD", "POST"])
@project_page("run")
def run_new(request: ProjectRequest) -> HttpResponse:
    """Show the form with its plan; start the runs if the start button was pressed."""
    is_new = request.method != "POST"
    if request.FILES and not request.access.may("upload"):
        raise PermissionDenied(
            f"Your role here, {request.access.role}, can't add guidance. Ask an author of the project."
        )
    asked = request.GET if is_new else request.POST
    starts = not is_new and "start" in request.POST
    replans = not starts and "planned_suite" in request.POST and _has_other_suite(request)
    page = _new_run_page(request.access, asked, request.FILES, is_new=is_new, replans=replans)
    planned = page.plan()
    if not starts:
        wrong = planned.problem and not is_new and not request.htmx
        return _show(request, page, planned, status=422 if wrong else 200)
    if planned.problem or planned.refusal:
        return _show(request, page, planned, status=422)
    if "planned" in request.POST and planned.trials > (key_of(request.POST["planned"]) or 0):
        # The button showed fewer trials: the user has not seen this plan.
        return _show(request, page, planned, status=409)
    return _start(request, page)


def _has_other_suite(request: ProjectRequest) -> bool:
    """Return whether the form names another suite than the plan beside it."""
    return request.POST.get("planned_suite", "") != request.POST.get("suite", "")


def _show(request: ProjectRequest, page: NewRunPage, planned: Plan, *, status: int = 200) -> HttpResponse:
    version = page.offer.versions.get(page.given.get("suite", ""))
    cards = guidance_cards(page.offer, version.suite, page.recent) if version else []
    latest = page.offer.defaults.get(version.suite_id) if version else None
    guidance = page.given.getlist("guidance") or [""]
    suite_changed = _has_other_suite(request)
    context = {
        "form": page.form,
        "plan": planned,
        "offer": page.offer,
        "past": page.past,
        "judges": page.offer.judges,
        "chosen_targets": page.given.getlist("targets"),
        "scenarios": page.scenarios,
        "failed_last": sum(each.scenario_id in page.past.failed for each in page.scenarios),
        "tiers": tier_choices(page.scenarios, page.given.get("tier", "").strip()),
        "cards": cards,
        # The latest upload's guidance has no card of its own.
        "chosen_guidance": ["" if latest and each == str(latest.pk) else each for each in guidance],
        "shown_cards": SHOWN_CARDS,
        "edits": bool(page.given.get("edit")),
        "has_changed": status == 409,
        "swapped": bool(request.htmx),
        "suite_changed": suite_changed,
        # One that was chosen before stays, with the plan's sentence and a box to take it back.
        "offers_lift": bool(page.form["lift"].value())
        or (version is not None and has_skill(version.suite, latest)),
        "scenarios_changed": suite_changed or PICK in request.POST,
        # Don't replace a number while it is being typed.
        "sets_trials": bool(request.htmx) and request.htmx.trigger_name == "trials",
    }
    template = "launch/new_run/_plan_swapped.html" if request.htmx else "launch/new_run/new_run.html"
    return render(request, template, context, status=status)


def _start(request: ProjectRequest, page: NewRunPage) -> HttpResponse:
    try:
        with transaction.atomic():
            page.form.store_document(request.user)
            launch = request_runs(
                request.access.project, page.form.request(), by=request.user, trigger=Trigger.WEB
            )
    except RequestError as error:
        # Choices may have changed since the plan was made.
        return _show(request, page, Plan(problem=str(error), id=error.id), status=422)
    runs = list(launch.runs.order_by("pk"))
    if len(runs) == 1:
        return redirect(runs[0])
    tried = list(dict.fromkeys(run.guidance_id for run in runs if run.guidance_id))
    if len(tried) > 1:
        compared = reverse("guidance-against", args=[request.access.project.slug, *tried[:2]])
        return redirect(f"{compared}?launch={launch.pk}")
    messages.success(request, f"Started {len(runs)} runs.")
    if len(runs) <= MOST_COMPARED and len({run.suite_id for run in runs}) == 1:
        compared = reverse("compare", args=[request.access.project.slug])
        return redirect(f"{compared}?runs={','.join(str(run.pk) for run in runs)}")
    return redirect("run-list", request.access.project.slug)
