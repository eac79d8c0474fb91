"""What people do with one run: compare it again, cancel or retry it, separate its causes, and make it a baseline."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import counted
from evalhub.teams import audit
from evalhub.teams.pages import ProjectRequest, project_page
from runs.compare.baselines import set_baseline, unset_baseline
from runs.compare.comparison import compare_with_baseline
from runs.engine.recording import cancel_run
from runs.engine.retrying import RetryKind, retry_trials
from runs.errors import RequestError
from runs.launch.separation import request_separation
from runs.models import Baseline, Run
from runs.models.run import RunState
from runs.results.find_run import find_shown_run


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
        messages.success(request, f"{counted(trials, 'trial')} queued. Earlier attempts are kept.")
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
