"""The search page."""

from __future__ import annotations

from django.http import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import chosen_table
from runs.results.run_filters import OUTCOMES, STATES
from runs.results.search.named_search import TrialSearch
from runs.results.search.search_page import (
    MOST,
    PLACES,
    find_matches,
    page_links,
    search_choices,
    search_table,
)
from runs.results.search.trial_search import MOST_CANDIDATES

MOST_PAGES = MOST_CANDIDATES // MOST


@require_safe
@project_page()
def show_search(request: ProjectRequest) -> HttpResponseBase:
    """Show the project's suites, scenarios, runs and trials that contain a text."""
    project, filters = request.access.project, TrialSearch.of(request.GET)
    if table := chosen_table(request, {"trials": lambda: search_table(project, filters)}):
        return table
    number = request.GET.get("page", "")
    page = min(max(int(number), 1), MOST_PAGES) if number.isascii() and number.isdecimal() else 1
    results = find_matches(project, filters, page)
    previous, following = page_links(filters, page, results.trial_count)
    context = {
        "filters": filters,
        "results": results,
        "most": MOST,
        "most_trials": MOST_CANDIDATES,
        "first": (page - 1) * MOST + 1,
        "previous": previous,
        "following": following,
        "choices": search_choices(project),
        "places": PLACES,
        "place_names": dict(PLACES),
        "outcomes": [each for each in STATES if each[0] in OUTCOMES],
    }
    return render(request, "results/search/search.html", context)
