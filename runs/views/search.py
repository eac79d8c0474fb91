"""What the search box finds."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from runs.warehouse.finding import MOST, find


@require_safe
@project_page()
def search(request: ProjectRequest) -> HttpResponse:
    """Show the runs, suites and scenarios of the project that a text is in."""
    text = request.GET.get("q", "").strip()[:200]
    context = {"q": text, "found": find(request.access.project, text), "most": MOST}
    return render(request, "search/search.html", context)
