"""The page of what a run's MCP servers showed to the agent."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from runs.pages.run.get_run import find_run
from runs.warehouse.tool_surfaces import surface_hash, surfaces_of


@require_safe
@project_page()
def run_tools(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show instructions and tools with their tokens."""
    run = find_run(request, pk)
    (surfaces,) = surfaces_of(run.project_id, [surface_hash(run)])
    baseline = run.baseline
    context = {
        "run": run,
        "hash": surface_hash(run),
        "tokens": sum(each.tokens for each in surfaces),
        "surfaces": surfaces,
        "overridden": bool(run.options.get("descriptions")),
        "differs": baseline is not None and surface_hash(baseline) not in ("", surface_hash(run)),
    }
    return render(request, "run/tools.html", context)
