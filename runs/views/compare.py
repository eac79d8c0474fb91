"""Two runs side by side."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import page_or_fragment
from runs.warehouse.compare import compare_runs, two_runs
from runs.warehouse.compared_facets import FACETS, compared_facets, left_by


@require_safe
@project_page()
def compare(request: ProjectRequest) -> HttpResponse:
    """Compare the two runs that the address names; ticked boxes of the list come one by one."""
    chosen = request.GET.getlist("runs")
    if len(chosen) > 1:
        # The older run is the base, whichever was ticked first.
        ordered = sorted(chosen, key=lambda key: (len(key), key))
        return redirect(f"{reverse('compare', args=[request.access.project.slug])}?runs={','.join(ordered)}")
    asked = chosen[0] if chosen else ""
    runs = two_runs(request.access.project, asked)
    if runs is None:
        return render(request, "compare/choose_runs.html", {"asked": asked}, status=404 if asked else 200)
    compared, show = compare_runs(*runs), request.GET.get("show", "")
    shown = show if show in FACETS else ""
    context = {
        "compared": compared,
        "facets": compared_facets(compared.scenarios),
        "scenarios": left_by(compared.scenarios, shown),
        "show": shown,
    }
    return page_or_fragment(request, "compare/compare.html", "compare/_scenarios.html", context)
