"""Search runs, suites and scenarios of one project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalhub.teams.models import Project
from evalhub.teams.pages import ProjectRequest, project_page
from runs.models import Run
from runs.warehouse.run_filters import RunListFilters
from runs.warehouse.run_list import matching_runs
from scenarios.models import Scenario, Suite, SuiteEntry, SuiteVersion

MOST = 20
"""Results shown per kind."""


@dataclass(frozen=True)
class SearchResults:
    """Matches, at most `MOST` per kind."""

    runs: Sequence[Run] = ()
    suites: Sequence[Suite] = ()
    scenarios: Sequence[Scenario] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.runs or self.suites or self.scenarios)


def find(project: Project, text: str) -> SearchResults:
    """Return the matches; scenarios by key and prompt of the newest version. Four queries."""
    if not text:
        return SearchResults()
    runs = matching_runs(project, RunListFilters(q=text)).order_by("-pk")[:MOST]
    suites = Suite.objects.filter(Q(name__icontains=text) | Q(slug__icontains=text), project=project)
    return SearchResults(list(runs), list(suites.select_related("project")[:MOST]), _scenarios(project, text))


def _scenarios(project: Project, text: str) -> list[Scenario]:
    newest: dict[int, int] = {}
    versions = SuiteVersion.objects.filter(suite__project=project).order_by("number")
    for suite, pk in versions.values_list("suite", "pk"):
        newest[suite] = pk
    entries = SuiteEntry.objects.filter(suite_version__in=newest.values()).annotate(
        prompt=KeyTextTransform("prompt", "scenario_version__content")
    )
    matching = entries.filter(Q(scenario_version__scenario__key__icontains=text) | Q(prompt__icontains=text))
    found = Scenario.objects.filter(pk__in=matching.values("scenario_version__scenario"))
    return list(found.select_related("suite__project").order_by("suite__name", "key")[:MOST])


@require_safe
@project_page()
def search(request: ProjectRequest) -> HttpResponse:
    """Show the project's runs, suites and scenarios that contain a text."""
    text = request.GET.get("q", "").strip()[:200]
    context = {"q": text, "results": find(request.access.project, text), "most": MOST}
    return render(request, "search/search.html", context)
