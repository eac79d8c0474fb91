"""The views that compare two runs, or up to ten: pages, tables as CSV, and differences of texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evalhub.teams.access import ProjectRequest, project_page
from evalhub.web.chips import rows_of_kind
from evalhub.web.csv_export import Cell, Table, chosen_table
from evalhub.web.paging import key_of
from runs.compare.compare_page.comparison import (
    DIFFERING,
    FACETS,
    ComparedRuns,
    ComparedScenario,
    compare_two_runs,
    compared_facets,
    scenario_values,
)
from runs.compare.compare_page.matrix import ChosenRuns, Matrix, chosen_runs, compare_several_runs
from runs.compare.differences import differing_values
from runs.compare.looks import Extension, extensions_of
from runs.compare.shown_changes import measure_table
from runs.models import Run
from runs.models.usage import surface_hash, surfaces_of
from runs.results.trial_page.side_by_side import TwoTrials, two_trials
from runs.targets.definitions import NO_RESULT
from scenarios.differences import TextDifference, lines_of, text_difference
from scenarios.models import Guidance

SCENARIO_COLUMNS = (
    *("scenario", "base_passed", "base_failed", "base_errors", "new_passed", "new_failed", "new_errors"),
    *("difference", "change", "comparable", "changed", "not_significant", "first_difference"),
)


def compared_scenario_table(compared: ComparedRuns, scenarios: Iterable[ComparedScenario]) -> Table:
    """Return the scenarios of a chip; `changed` names the parts that changed."""
    return Table(f"{compared.name}-scenarios", SCENARIO_COLUMNS, (_scenario(each) for each in scenarios))


def _scenario(scenario: ComparedScenario) -> tuple[Cell, ...]:
    difference = scenario.gain if scenario.change in ("worse", "better", "same") else None
    sides = (scenario.before, scenario.now)
    counts = [side.count(word) for side in sides for word in ("pass", "fail", "error")]
    apart = scenario.diverging.divergence if scenario.diverging else None
    return (
        *(
            scenario.key,
            *counts,
            difference,
            scenario.change,
            scenario.is_comparable,
            " ".join(scenario.changed),
        ),
        *(scenario.is_not_significant, apart.label if apart else None),
    )


def matrix_table(matrix: Matrix) -> Table:
    """Return the matrix's measures, one row for each run."""
    header = ("measure", "unit", "run", "value", "difference", "low_95", "high_95", "scale", "verdict")
    return Table("runs-measures", header, _matrix_rows(matrix))


def _matrix_rows(matrix: Matrix) -> Iterator[tuple[Cell, ...]]:
    for row in matrix.summary:
        for column, cell in zip(matrix.columns, row, strict=True):
            change = cell.change.change if cell.change else None
            cells = (
                (change.effect, change.lower, change.upper, change.scale.value, change.verdict.value)
                if change
                else [None] * 5
            )
            yield (cell.name, cell.unit, column.run.pk, cell.new, *cells)


def matrix_scenario_table(matrix: Matrix) -> Table:
    """Return the scenarios' trials by run; `change` is against the base, by counts."""
    header = ("scenario", "run", "passed", "trials", "change")
    rows = (
        (row.key, column.run.pk, cell.rates[1].passed, cell.rates[1].n, (cell.change or None) if at else None)
        for row in matrix.scenarios
        for at, (column, cell) in enumerate(zip(matrix.columns, row.cells, strict=True))
    )
    return Table("runs-scenarios", header, rows)


@dataclass(frozen=True)
class NamedDifference:
    """The difference of one document."""

    name: str
    text: TextDifference | None
    """None if it is too long."""


PARTS = {"guidance": "Guidance", "target": "Target", "judge": "Judge", "tool": "Tool's descriptions"}


def differing_parts(base: Run, new: Run) -> dict[str, str]:
    """Return which of guidance, target, judge and tool descriptions differ, with their labels. No query."""
    judges = [run.fingerprint.get("judge_sha256") for run in (base, new)]
    differs = {
        "guidance": base.guidance_id != new.guidance_id,
        "target": base.target_version_id != new.target_version_id,
        "judge": all(judges) and judges[0] != judges[1],
        "tool": surface_hash(base) != surface_hash(new),
    }
    return {name: label for name, label in PARTS.items() if differs[name]}


def text_differences(base: Run, new: Run, part: str) -> list[NamedDifference]:
    """Return the differing documents of a part, by path. At most one query; expects target versions to be loaded."""
    documents = {"guidance": _guidance, "target": _targets, "judge": _judges, "tool": _tools}
    before, after = documents[part](base, new)
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return [
        NamedDifference(path, text_difference(lines_of(before.get(path, "")), lines_of(after.get(path, ""))))
        for path in paths
    ]


def _guidance(*runs: Run) -> list[dict[str, str]]:
    keys = [run.guidance_id for run in runs if run.guidance_id]
    files = dict(Guidance.objects.filter(pk__in=keys).values_list("pk", "files"))
    return [
        {str(each["path"]): str(each.get("content") or "") for each in files.get(run.guidance_id or 0, [])}
        for run in runs
    ]


def _targets(*runs: Run) -> list[dict[str, str]]:
    versions = [run.target_version for run in runs]
    return [{"definition": _definition_text(each.definition if each else {})} for each in versions]


def _judges(*runs: Run) -> list[dict[str, str]]:
    texts: dict[int, dict[str, str]] = {run.pk: {} for run in runs}
    columns = ("run_id", "targetversion__target__name", "targetversion__definition")
    versions = Run.judge_versions.through.objects.filter(run__in=texts).values_list(*columns)
    for run, name, definition in versions:
        texts[run][name] = _definition_text(definition)
    return [texts[run.pk] for run in runs]


def _tools(*runs: Run) -> list[dict[str, str]]:
    surfaces = surfaces_of(runs[0].project_id, [surface_hash(run) for run in runs])
    return [
        {name: text for surface in run_surfaces for name, text in surface.documents.items()}
        for run_surfaces in surfaces
    ]


def _definition_text(definition: Mapping[str, Any]) -> str:
    relevant = {name: value for name, value in definition.items() if name not in NO_RESULT}
    return json.dumps(relevant, indent=2, sort_keys=True, ensure_ascii=False) if relevant else ""


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
    response.set_cookie(
        *(HELP_COOKIE, "read"),
        max_age=A_YEAR,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response
