"""Asking for runs: the form, the plan that follows it, and the start."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from runs.errors import RequestError
from runs.forms import RunForm
from runs.models.run import Trigger
from runs.planning import PlannedRun, plan, request_runs
from runs.warehouse.targets import target_rows


@dataclass(frozen=True)
class Plan:
    """What a request comes to, or why it comes to nothing."""

    runs: tuple[PlannedRun, ...] = ()
    problem: str = ""
    id: str = ""

    @property
    def trials(self) -> int:
        return sum(run.trial_count for run in self.runs)


def plan_of(project: Project, form: RunForm) -> Plan:
    """Return the plan of a form; the sentence of a request that cannot be carried out is part of it."""
    if not form.is_valid():
        return Plan(problem="The form has a mistake, which is told beside its field.", id="request/form")
    try:
        return Plan(plan(project, form.request()))
    except RequestError as error:
        return Plan(problem=str(error), id=error.id)


@require_http_methods(["GET", "POST"])
@project_page("run")
def run_new(request: ProjectRequest) -> HttpResponse:
    """Show the form with its plan; start the runs when that is what the button said."""
    project = request.access.project
    if request.method == "GET":
        return _show(request, RunForm(project, initial=request.GET.dict()), Plan())
    form = RunForm(project, request.POST)
    planned = plan_of(project, form)
    if planned.problem or "start" not in request.POST:
        return _show(request, form, planned, status=422 if planned.problem and not request.htmx else 200)
    return _start(request, form)


def _show(request: ProjectRequest, form: RunForm, planned: Plan, *, status: int = 200) -> HttpResponse:
    template = "runs/_plan.html" if request.htmx else "runs/run_new.html"
    context = {"form": form, "plan": planned, "chosen_targets": form["targets"].value() or []}
    if not request.htmx:
        rows = target_rows(request.access.project, now=timezone.now())
        context["targets"] = [row for row in rows if row.target.accepted and not row.target.is_imported]
    return render(request, template, context, status=status)


def _start(request: ProjectRequest, form: RunForm) -> HttpResponse:
    try:
        launch = request_runs(request.access.project, form.request(), by=request.user, trigger=Trigger.WEB)
    except RequestError as error:
        # What there is to run may have changed since the plan was made.
        return _show(request, form, Plan(problem=str(error), id=error.id), status=422)
    runs = list(launch.runs.order_by("pk"))
    if len(runs) == 1:
        return redirect(runs[0])
    messages.success(request, f"{len(runs)} runs are started.")
    return redirect("run-list", request.access.project.slug)
