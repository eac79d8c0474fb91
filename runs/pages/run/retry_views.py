"""Retry a run's errors, or resume a cancelled run, from its page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.numbers import counted
from runs.errors import RequestError
from runs.execution.retrying import Again, run_again
from runs.pages.run.get_run import find_run


@require_POST
@project_page("run")
def run_retry(request: ProjectRequest, pk: int, again: str) -> HttpResponse:
    """Run the trials with errors, or the cancelled ones, again in the same run."""
    run = find_run(request, pk)
    try:
        trials = run_again(run, Again(again), by=request.user)
        messages.success(request, f"{counted(trials, 'trial')} queued. Earlier attempts are kept.")
    except RequestError as error:
        messages.error(request, str(error))
    return redirect(run)
