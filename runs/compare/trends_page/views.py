"""Views of trends."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpResponseBase
from django.views.decorators.http import require_safe

from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import csv_response, wants_csv
from evalhub.web.fragments import page_or_fragment
from runs.compare.default_suite import newest_suite
from runs.compare.trends_page.trend_page import trend_page, trend_table
from scenarios.models import Suite


def _chosen_suite(
    project: Project, slug: str, default: Callable[[Project], int | None]
) -> tuple[list[Suite], Suite | None]:
    """Return the project's suites and the requested one, else `default`'s, else the first."""
    suites = list(Suite.objects.filter(project=project))
    requested = next((suite for suite in suites if suite.slug == slug), None)
    if requested or not suites:
        return suites, requested
    newest = default(project)
    return suites, next((suite for suite in suites if suite.pk == newest), suites[0])


@require_safe
@project_page()
def trends(request: ProjectRequest) -> HttpResponseBase:
    """Show a suite's measures and subcommands over its runs, as charts and a table."""
    suites, suite = _chosen_suite(request.access.project, request.GET.get("suite", ""), newest_suite)
    page = trend_page(suite, request.GET) if suite else None
    if wants_csv(request):
        return csv_response(trend_table(suite.slug if suite else "", page))
    context = {
        "suite_choices": [(each.slug, each.name) for each in suites],
        "suite": suite,
        "trend": page,
    }
    return page_or_fragment(request, "compare/trends/trends.html", "compare/trends/_trend.html", context)
