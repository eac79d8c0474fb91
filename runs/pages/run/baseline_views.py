"""Views that set and remove baselines."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from evalhub.teams.pages import ProjectRequest, project_page
from runs.errors import RequestError
from runs.models import Baseline
from runs.pages.run.get_run import find_run
from runs.warehouse.baselines import set_baseline, unset_baseline

LONGEST_BRANCH = 200


@require_POST
@project_page("triage")
def baseline_set(request: ProjectRequest, pk: int) -> HttpResponse:
    """Make a run the baseline of its suite and target, or of a branch."""
    run = find_run(request, pk)
    branch = request.POST.get("branch", "").strip()
    try:
        if len(branch) > LONGEST_BRANCH or "\x00" in branch:
            raise RequestError(
                f"Branch names have at most {LONGEST_BRANCH} characters and no NUL. Use another name."
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
