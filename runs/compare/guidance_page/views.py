"""Views of guidance: list, version and comparison."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.csv_export import chosen_table
from evalhub.web.fragments import page_or_fragment
from evalhub.web.paging import key_of, page_below
from runs.compare.guidance.guidance_matrix import guidance_matrix
from runs.compare.guidance.guidance_strip import guidance_strip
from runs.compare.guidance_page.against import guidance_against
from runs.compare.guidance_page.answer import answer_of_strip
from runs.compare.guidance_page.strip_rows import heat_rows, shown_versions, strip_rows
from runs.compare.guidance_page.tables import (
    guidance_scenario_table,
)
from runs.compare.guidance_page.versions import find_guidance, guidance_page, guidance_versions
from runs.compare.shown_changes import measure_table
from scenarios.adopted_guidance import AdoptionRefused, adopt_guidance, last_guidance
from scenarios.models import Guidance, Suite
from scenarios.naming import NameRefused, rename_guidance


@require_safe
@project_page()
def lead_to_guidance(request: ProjectRequest) -> HttpResponseBase:
    """Lead to the page that the matrix became a part of."""
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    return redirect(reverse("guidance-list", args=[request.access.project.slug]) + query)


UNTRIED = 20
"""The newest versions among which one is looked for that never ran."""


@require_safe
@project_page()
def guidance_list(request: ProjectRequest) -> HttpResponseBase:
    """Show which version of a suite's guidance is best, every version against the one before it, and by tool version."""
    suites, slug = _suites(request), request.GET.get("suite", "")
    suite = next((each for each in suites if each.slug == slug), next(iter(suites), None))
    if suite is None:
        return render(request, "compare/guidance/list.html", {"suites": ()})
    suite.project = request.access.project
    strip = guidance_strip(suite, request.GET.get("target", ""))
    matrix = guidance_matrix(suite, [each.guidance for each in strip.versions], strip.runs)
    stored = guidance_versions(suite)
    context = {
        "page": page_below(stored, request.GET.get("before", "")),
        "suites": [(each.slug, each.name) for each in suites],
        "suite": suite,
        "strip": strip,
        "answer": answer_of_strip(strip, stored[:UNTRIED]),
        "versions": shown_versions(strip),
        "measures": strip_rows(strip, matrix),
        "matrix": matrix,
        "heat": heat_rows(matrix),
        "may_run": request.access.may("run"),
        "may_upload": request.access.may("upload"),
    }
    return render(request, "compare/guidance/list.html", context)


@require_POST
@project_page("upload")
def guidance_adopt(request: ProjectRequest, pk: int) -> HttpResponse:
    """Make a version the suite's guidance, and show the suite's versions."""
    (guidance,) = _find(request, pk)
    try:
        is_new = adopt_guidance(guidance, by=request.user)
    except AdoptionRefused as refused:
        messages.error(request, str(refused))
    else:
        name = guidance.suite.name
        messages.success(
            request, f"{name} now uses {guidance}." if is_new else f"{name} uses {guidance} already."
        )
    address = reverse("guidance-list", args=[request.access.project.slug])
    return redirect(f"{address}?{urlencode({'suite': guidance.suite.slug})}")


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(to_post="upload")
def guidance_detail(request: ProjectRequest, pk: int) -> HttpResponse:
    """Show a version; change its name. A name that somebody else changed in between is not overwritten."""
    (guidance,), error = _find(request, pk), ""
    if request.method == "POST":
        try:
            rename_guidance(
                guidance, request.POST.get("name", ""), was=request.POST.get("was"), by=request.user
            )
        except NameRefused as refused:
            error = str(refused)
            guidance.refresh_from_db(fields=["name"])
        else:
            messages.success(request, "Saved the name.")
            return redirect("guidance-detail", request.access.project.slug, pk)
    other = key_of(request.GET.get("other", ""))
    if other is not None:
        return redirect("guidance-against", request.access.project.slug, other, pk)
    context = {
        "page": guidance_page(guidance),
        "raw": request.GET.get("part") == "raw",
        "error": error,
        "typed": request.POST.get("name", guidance.name),
        "may_upload": request.access.may("upload"),
        "may_run": request.access.may("run"),
    }
    return render(request, "compare/guidance/version.html", context, status=422 if error else 200)


@require_safe
@project_page()
def guidance_against_other(request: ProjectRequest, a: int, b: int) -> HttpResponseBase:
    """Compare two versions of a suite's guidance; with `launch`, within one launch while it runs."""
    before, after = _find(request, a, b)
    if before.suite_id != after.suite_id or before == after:
        raise Http404
    launch = key_of(request.GET.get("launch", ""))
    page = guidance_against(before, after, setting=request.GET.get("setting", ""), launch=launch)
    tables = {
        "measures": lambda: measure_table(
            f"{page.name}-measures", page.verdict.rows if page.verdict else (), ("a", "b")
        ),
        "scenarios": lambda: guidance_scenario_table(page),
    }
    if table := chosen_table(request, tables):
        return table
    others = before.suite.guidance.defer("files").exclude(pk__in=(a, b))
    context = {
        "page": page,
        "launch": launch,
        "others": list(others.filter(runs__launch=launch).distinct()) if launch else [],
        "adopted": last_guidance(before.suite),
        "may_run": request.access.may("run"),
        "may_upload": request.access.may("upload"),
        "expert": request.GET.get("columns") == "expert",
    }
    return page_or_fragment(
        request, "compare/guidance/against.html", "compare/guidance/_results.html", context
    )


def _find(request: ProjectRequest, *keys: int) -> list[Guidance]:
    """Return the project's guidance versions. Raises `Http404` unless all exist."""
    versions = find_guidance(request.access.project, *keys)
    if len(versions) != len(keys):
        raise Http404
    return versions


def _suites(request: ProjectRequest) -> list[Suite]:
    """Return the suites with guidance, the one with most versions first."""
    suites = Suite.objects.filter(project=request.access.project).annotate(versions_n=Count("guidance"))
    return list(suites.filter(versions_n__gt=0).order_by("-versions_n", "name"))
