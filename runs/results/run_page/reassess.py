"""What people do with a run on its page: judge or grade it again, rerun it, retry it, cancel it, compare it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import format_count
from evalhub.teams import audit
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.template_filters import urlencode
from evaluators.grading.judges.rubric import READY
from runs.compare.baselines import set_baseline, unset_baseline
from runs.compare.comparison import compare_with_baseline
from runs.engine.recording import cancel_run
from runs.engine.retrying import RetryKind, retry_trials
from runs.engine.stored_trials.adopting import adopt, read_newest_reassessments
from runs.engine.stored_trials.reassessing import request_reassessment
from runs.engine.stored_trials.reassessment_plan import estimate_reassessment
from runs.errors import RequestError
from runs.launch.separation import request_separation
from runs.models import Baseline, Reassessment, Run, Target
from runs.models.run import RunState
from runs.results.find_run import find_shown_run
from runs.targets.providers.registry import JUDGES

LONGEST = 2_000
"""Maximum characters of a query string: servers refuse lines of 4,000."""
PARTS = {"fail": ("failed scenario", ""), "error": ("scenario", " with errors")}
"""Labels of scenarios by a trial's outcome."""


@dataclass(frozen=True)
class RerunLink:
    """Some scenarios of a run, to rerun."""

    label: str
    query: str


def rerun_query(run: Run, keys: Sequence[str] = ()) -> str:
    """Return the new run form's query string to rerun a run, or these scenarios of it.

    Empty for imported runs, which have no target, and where the query would be too long.
    """
    if run.target.is_imported or not run.target.accepted:
        return ""
    fields = {
        "suite": run.suite.slug,
        "targets": run.target.name,
        "models": run.model,
        "guidance": run.guidance_id or "",
        # Too long for an address: the form takes them from the run.
        "descriptions_of": run.pk if run.options.get("descriptions") else "",
    }
    named = [(name, value) for name, value in fields.items() if value] + [("only", key) for key in keys]
    query = "&".join([f"{name}={urlencode(value, '')}" for name, value in named])
    return query if len(query) <= LONGEST else ""


def partial_rerun_links(run: Run, outcomes: Mapping[str, Sequence[str]]) -> Iterator[RerunLink]:
    """Return links to rerun what went wrong, from the trials' outcomes by scenario."""
    for outcome, (before, after) in PARTS.items():
        keys = [key for key, each in outcomes.items() if outcome in each]
        query = rerun_query(run, keys) if keys else ""
        if query:
            yield RerunLink(f"Rerun {format_count(len(keys), before)}{after}…", query)


class ReassessForm(forms.Form):
    """How to assess again."""

    kind = forms.ChoiceField(choices=Reassessment.Kind.choices)
    judge_model = forms.CharField(required=False, max_length=200)
    rubric = forms.ChoiceField(
        required=False, choices=[("", "each scenario's own"), *((name, name) for name in READY)]
    )
    max_usd = forms.FloatField(required=False, min_value=0.0001, max_value=1_000_000)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(to_post="run")
def reassess_run(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show plans, progress and results of assessing a run again; request one."""
    project = request.access.project
    related = ("project", "suite", "suite_version", "target")
    run = Run.objects.filter(project=project, pk=pk).select_related(*related).first()
    if run is None:
        raise Http404
    here = reverse("run-reassess", args=[project.slug, pk])
    form = ReassessForm(request.POST or None, initial={"kind": "judge"})
    if request.method == "POST":
        try:
            if not form.is_valid():
                name, errors = next(iter(form.errors.items()))
                raise RequestError(f"{name.replace('_', ' ')}: {errors[0]}")
            options = dict(form.cleaned_data)
            requested = request_reassessment(run, options.pop("kind"), by=request.user, **options)
            messages.success(request, f"Requested: {requested}. A worker starts it.")
        except RequestError as error:
            messages.error(request, str(error))
        return redirect(here)
    context: dict[str, Any] = {
        "run": run,
        "form": form,
        "judges": Target.objects.filter(project=project, accepted=True, provider__in=JUDGES)
        .order_by("name")
        .values_list("name", flat=True),
        "plans": [(kind.label, estimate_reassessment(run, kind)) for kind in Reassessment.Kind],
        "found": read_newest_reassessments(run),
        "may_run": request.access.may("run"),
        "may_review": request.access.may("review"),
    }
    return render(request, "results/run/again.html", context)


@require_POST
@project_page("review")
def reassessment_adopt(request: ProjectRequest, pk: int) -> HttpResponse:
    """Make the scores of a reassessment count."""
    rows = Reassessment.objects.filter(run__project=request.access.project)
    reassessment = rows.filter(pk=pk).first()
    if reassessment is None:
        raise Http404
    try:
        n = adopt(reassessment, by=request.user)
        messages.success(request, f"Adopted the scores of {format_count(n, 'trial')}; the run is recomputed.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect("run-reassess", request.access.project.slug, reassessment.run_id)


@require_POST
@project_page("triage")
def compare_run_again(request: ProjectRequest, pk: int) -> HttpResponse:
    """Compare a finished run again, with its current line or baseline."""
    run = Run.objects.select_related("project").filter(project=request.access.project, pk=pk).first()
    if run is None:
        raise Http404
    if run.state == RunState.FINISHED:
        with transaction.atomic():
            compare_with_baseline(run)
            audit.append_event(run.project, request.user, "run.compare", run, verdict=run.verdict)
        messages.success(request, f"Compared run {run.pk} again.")
    return redirect(run.get_absolute_url())


@require_POST
@project_page("run")
def run_cancel(request: ProjectRequest, pk: int) -> HttpResponse:
    """Cancel a run: queued trials at once, running ones within seconds."""
    run = find_shown_run(request, pk)
    if cancel_run(run.pk):
        audit.append_event(request.access.project, request.user, "run.cancel", run)
        messages.success(request, f"Cancelling run {run.pk}. Finished trials are kept.")
    else:
        messages.error(request, f"Run {run.pk} has already finished.")
    return redirect(run)


@require_POST
@project_page("run")
def run_retry(request: ProjectRequest, pk: int, again: str) -> HttpResponse:
    """Run the trials with errors, or the cancelled ones, again in the same run."""
    run = find_shown_run(request, pk)
    try:
        trials = retry_trials(run, RetryKind(again), by=request.user)
        messages.success(request, f"{format_count(trials, 'trial')} queued. Earlier attempts are kept.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect(run)


@require_POST
@project_page("run")
def run_separate(request: ProjectRequest, pk: int) -> HttpResponse:
    """Queue the runs that set a regression's causes apart."""
    run = find_shown_run(request, pk)
    try:
        runs = request_separation(run.pk, by=request.user)
        messages.success(request, f"Queued {len(runs)} runs. This page says which cause they point at.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect(f"{run.get_absolute_url()}#causes")


@require_POST
@project_page("triage")
def baseline_set(request: ProjectRequest, pk: int) -> HttpResponse:
    """Make a run the baseline of its suite and target, or of a branch."""
    run = find_shown_run(request, pk)
    branch = request.POST.get("branch", "").strip()
    try:
        if len(branch) > LONGEST_NAME or "\x00" in branch:
            raise RequestError(
                f"Branch names have at most {LONGEST_NAME} characters and no NUL. Use another name."
            )
        set_baseline(run, by=request.user, branch=branch)
    except RequestError as error:
        messages.error(request, str(error))
    else:
        which = f"of branch {branch}" if branch else "of its suite on this target"
        messages.success(request, f"Run {pk} is now the baseline {which}. New runs are compared with it.")
    return redirect(run)


@require_POST
@project_page("triage")
def baseline_unset(request: ProjectRequest, pk: int) -> HttpResponse:
    """Remove a baseline; existing comparisons stay."""
    rows = Baseline.objects.select_related("suite__project")
    baseline = get_object_or_404(rows, suite__project=request.access.project, pk=pk)
    unset_baseline(baseline, by=request.user)
    messages.success(request, f"Removed run {baseline.run_id} as baseline.")
    return redirect(baseline.suite)
