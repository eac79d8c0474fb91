"""The views that compare two runs, or up to ten."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.chips import rows_of_kind
from evalhub.web.csv_export import chosen_table
from evalhub.web.paging import key_of
from runs.compare.compare_page.chosen_runs import ChosenRuns, chosen_runs
from runs.compare.compare_page.compared_scenarios import (
    DIFFERING,
    FACETS,
    ComparedScenario,
    compared_facets,
)
from runs.compare.compare_page.comparison import compare_two_runs, scenario_values
from runs.compare.compare_page.matrix import compare_several_runs
from runs.compare.compare_page.tables import (
    compared_scenario_table,
    matrix_scenario_table,
    matrix_table,
)
from runs.compare.compare_page.text_differences import PARTS, differing_parts, text_differences
from runs.compare.differences import differing_values
from runs.compare.extensions import Extension, extensions_of
from runs.compare.shown_changes import measure_table
from runs.results.trial_page.side_by_side import TwoTrials, two_trials

HELP_COOKIE = "compare_help"
"""Set once somebody has dismissed how to read a comparison."""
A_YEAR = 365 * 24 * 3600


@require_safe
@project_page()
def compare(request: ProjectRequest) -> HttpResponseBase:
    """Compare runs with the first one; the list's check boxes send them as separate parameters."""
    keys = request.GET.getlist("runs")
    if len(keys) > 1:
        # The oldest run is the base, whichever was ticked first.
        return _to(request, sorted(keys, key=lambda key: (len(key), key)))
    if added := request.GET.get("add", "").strip():
        return _to(request, [*keys, added])
    chosen = chosen_runs(request.access.project, keys[0] if keys else "")
    if not chosen.runs:
        status = 404 if chosen.problem else 200
        return render(request, "compare/compare/choose_runs.html", {"problem": chosen.problem}, status=status)
    if len(chosen.runs) != 2:
        return _several_runs(request, chosen, _help(request, chosen))
    fresh = extensions_of(chosen.runs)
    if request.htmx and request.htmx.target == "fresh":
        return _fresh(request, chosen, fresh)
    counted = [] if request.GET.get("fresh") == "no" else fresh
    context = _help(request, chosen) | {"fresh": fresh, "pooled": any(each.looks for each in counted)}
    return _two_runs(request, chosen, counted, context)


def _help(request: ProjectRequest, chosen: ChosenRuns) -> dict[str, object]:
    return {"chosen": chosen, "is_help_read": request.COOKIES.get(HELP_COOKIE) == "read"}


def _to(request: ProjectRequest, numbers: list[str]) -> HttpResponse:
    return redirect(f"{reverse('compare', args=[request.access.project.slug])}?runs={','.join(numbers)}")


def _fresh(request: ProjectRequest, chosen: ChosenRuns, fresh: list[Extension]) -> HttpResponse:
    """Show how far the further trials are; the whole page is loaded again with the last of them."""
    response = render(request, "compare/compare/_fresh.html", {"chosen": chosen, "fresh": fresh})
    if not any(each.is_open for each in fresh):
        response["HX-Refresh"] = "true"
    return response


def _two_runs(
    request: ProjectRequest, chosen: ChosenRuns, fresh: list[Extension], context: dict[str, object]
) -> HttpResponseBase:
    base, new = chosen.runs
    part = request.GET.get("part", "")
    documents = text_differences(base, new, part) if part in PARTS else []
    compared = compare_two_runs(base, new, fresh)
    show = request.GET.get("show", DIFFERING)
    scenarios = rows_of_kind(compared.scenarios, show, FACETS)
    tables = {
        "measures": lambda: measure_table(
            f"{compared.name}-measures", [*compared.headline, *compared.others]
        ),
        "scenarios": lambda: compared_scenario_table(compared, scenarios),
    }
    if table := chosen_table(request, tables):
        return table
    opened = next((each for each in scenarios if each.key == request.GET.get("open")), None)
    measure = request.GET.get("measure", "")
    context |= {
        "compared": compared,
        "facets": compared_facets(compared.scenarios),
        "scenarios": scenarios,
        "show": show if show in FACETS else "all",
        "expert": request.GET.get("columns") == "expert",
        "opened": opened,
        "pair": _pair(request, opened) if opened else None,
        "measure": measure,
        "values": scenario_values(base, new, measure, fresh) if measure else [],
        "parts": differing_parts(base, new),
        "part": part,
        "versions": chosen.runs
        if (base.suite_id == new.suite_id and base.suite_version_id != new.suite_version_id)
        else (),
        "documents": documents,
        "may_run": request.access.may("run"),
    }
    fragments = {
        "scenarios": "compare/compare/_scenarios.html",
        "measures": "compare/compare/_measures.html",
        "documents": "compare/compare/_documents.html",
    }
    return _page(request, "compare/compare/compare.html", fragments, context)


def _pair(request: ProjectRequest, opened: ComparedScenario) -> TwoTrials | None:
    """Return the two trials of the opened scenario that the address names, else the most telling ones."""
    if not opened.base or not opened.new:
        return None
    asked = [key_of(word) for word in request.GET.get("pair", "").split(",")]
    known = [{trial.pk for trial in side} for side in (opened.base, opened.new)]
    if len(asked) == 2 and asked[0] in known[0] and asked[1] in known[1]:
        return two_trials(request.access.project, asked[0] or 0, asked[1] or 0)
    if opened.diverging:
        return two_trials(request.access.project, opened.diverging.base, opened.diverging.new)
    base, new = (
        next((trial.pk for trial in side if trial.outcome == outcome), side[0].pk)
        for side, outcome in ((opened.base, "pass"), (opened.new, "fail"))
    )
    return two_trials(request.access.project, base, new)


def _several_runs(
    request: ProjectRequest, chosen: ChosenRuns, context: dict[str, object]
) -> HttpResponseBase:
    matrix = compare_several_runs(chosen.runs)
    differs_only = request.GET.get("show") == DIFFERING
    tables = {
        "measures": lambda: matrix_table(matrix),
        "scenarios": lambda: matrix_scenario_table(matrix),
    }
    if table := chosen_table(request, tables):
        return table
    context |= {
        "matrix": matrix,
        "rows": matrix.differing if differs_only else matrix.scenarios,
        "differs_only": differs_only,
        "fingerprints": differing_values(chosen.runs),
    }
    return _page(request, "compare/compare/matrix.html", {"matrix": "compare/compare/_matrix.html"}, context)


def _page(
    request: ProjectRequest, page: str, fragments: Mapping[str, str], context: dict[str, object]
) -> HttpResponse:
    """Render the fragment that htmx asks for, else the page."""
    target = request.htmx.target if request.htmx and not request.htmx.history_restore_request else None
    response = render(request, fragments.get(target or "", page), context)
    response["Vary"] = "HX-Request, HX-Target"
    return response


@require_POST
@project_page()
def compare_help(request: ProjectRequest) -> HttpResponse:
    """Remember that somebody has read how to read a comparison."""
    chosen = chosen_runs(request.access.project, request.POST.get("runs", ""))
    response = _to(request, [str(run.pk) for run in chosen.runs])
    _remember(request, response)
    return response


def _remember(request: HttpRequest, response: HttpResponse) -> None:
    response.set_cookie(
        *(HELP_COOKIE, "read"),
        max_age=A_YEAR,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
