"""The view that compares two runs."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import chosen_table, wants_csv
from evalhub.web.fragments import page_or_fragment
from runs.pages.compare.comparison import ComparedScenario, compare_runs, two_runs
from runs.pages.compare.tables import measure_table, scenario_table
from runs.pages.run.scenarios import Chip, Facets


@require_safe
@project_page()
def compare(request: ProjectRequest) -> HttpResponseBase:
    """Compare two runs; the list's check boxes send them as separate parameters."""
    chosen = request.GET.getlist("runs")
    if len(chosen) > 1:
        # The older run is the base, whichever was ticked first.
        ordered = sorted(chosen, key=lambda key: (len(key), key))
        return redirect(f"{reverse('compare', args=[request.access.project.slug])}?runs={','.join(ordered)}")
    numbers = chosen[0] if chosen else ""
    runs = two_runs(request.access.project, numbers)
    if runs is None:
        return render(
            request, "compare/choose_runs.html", {"numbers": numbers}, status=404 if numbers else 200
        )
    compared, show = compare_runs(*runs), request.GET.get("show", "")
    shown = show if show in FACETS else ""
    scenarios = left_by(compared.scenarios, shown)
    if wants_csv(request):
        tables = {
            "measures": lambda: measure_table(compared),
            "scenarios": lambda: scenario_table(compared, scenarios),
        }
        return chosen_table(request, tables)
    context = {
        "compared": compared,
        "facets": compared_facets(compared.scenarios),
        "scenarios": scenarios,
        "show": shown,
        "expert": request.GET.get("columns") == "expert",
    }
    return page_or_fragment(request, "compare/compare.html", "compare/_scenarios.html", context)


Test = Callable[[ComparedScenario], bool]
FACETS: dict[str, tuple[str, str, str, Test]] = {
    "differing": (
        "Changed",
        "",
        "",
        lambda each: each.verdict not in ("same", "unmeasured", "incomparable"),
    ),
    "regressed": ("Worse", "▼", "worse", lambda each: each.verdict == "regressed"),
    "improved": ("Better", "▲", "better", lambda each: each.verdict == "improved"),
    "unmeasured": ("Errors only", "!", "caution", lambda each: each.verdict == "unmeasured"),
    "added": ("Only in the new run", "", "", lambda each: each.verdict == "added"),
    "removed": ("Only in the base", "", "", lambda each: each.verdict == "removed"),
    "same": ("Same", "=", "muted", lambda each: each.verdict == "same"),
    "incomparable": ("Not comparable", "!", "caution", lambda each: not each.is_comparable),
}


def compared_facets(scenarios: list[ComparedScenario]) -> Facets:
    """Return the chips with their numbers of scenarios, without empty ones."""
    counted = [
        Chip(name, label, sum(map(test, scenarios)), sign, look)
        for name, (label, sign, look, test) in FACETS.items()
    ]
    whole = Chip("", "All", len(scenarios))
    return Facets(len(scenarios), (whole, *(chip for chip in counted if chip.n)))


def left_by(scenarios: list[ComparedScenario], show: str) -> list[ComparedScenario]:
    """Return a chip's scenarios; all for an unknown chip."""
    return [each for each in scenarios if FACETS[show][3](each)] if show in FACETS else scenarios
