"""Two trials of a scenario side by side."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from runs.warehouse.two_trials import two_trials


@require_safe
@project_page()
def trial_against(request: ProjectRequest, pk: int, base: int) -> HttpResponse:
    """Show a trial beside another one of its scenario, such as the baseline's."""
    compared = two_trials(request.access.project, base, pk)
    if compared is None:
        raise Http404
    return render(request, "trial/side_by_side.html", {"compared": compared})
