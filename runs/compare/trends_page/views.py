"""Views of trends and of their annotations."""

from __future__ import annotations

from datetime import date

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.middleware import page_or_fragment, posted_query
from evalhub.web.paging import key_of
from runs.compare.annotations import (
    LONGEST_ANNOTATION,
    add_annotation,
    may_remove,
    remove_annotation,
    trend_annotations,
)
from runs.compare.default_suite import choose_suite
from runs.compare.trends_page.trend_page import trend_page
from runs.errors import RequestError
from runs.models import Run
from scenarios.models import Suite


@require_safe
@project_page()
def trends(request: ProjectRequest) -> HttpResponseBase:
    """Show a suite's measures over its runs: one large, the others and its subcommands small, and a table."""
    suites, suite = choose_suite(request.access.project, request.GET.get("suite", ""))
    if suite:
        suite.project = request.access.project
    page = trend_page(suite, request.GET) if suite else None
    if page and "figure" in request.GET:
        return HttpResponse(page.figure(), content_type="application/json")
    context = {
        "suite_choices": [(each.slug, each.name) for each in suites],
        "suite": suite,
        "trend": page,
        "shows_values": "values" in request.GET,
        "annotations": [(each, may_remove(each, request.access)) for each in page.annotations]
        if page
        else [],
        "longest_text": LONGEST_ANNOTATION,
    }
    return page_or_fragment(request, "compare/trends/trends.html", "compare/trends/_trend.html", context)


@require_POST
@project_page("annotate")
def annotation_add(request: ProjectRequest) -> HttpResponse:
    """Annotate trends at a run, or on a day."""
    project, posted = request.access.project, request.POST
    try:
        add_annotation(
            project,
            by=request.user,
            text=posted.get("text", ""),
            run=_find_run(project, posted.get("run", "").strip()),
            suite=Suite.objects.filter(project=project, slug=posted.get("suite", "")).first(),
            day=_read_day(posted.get("day", "")),
        )
    except RequestError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Saved the annotation.")
    return _back(request)


@require_POST
@project_page("annotate")
def annotation_remove(request: ProjectRequest, pk: int) -> HttpResponse:
    """Remove an annotation of one's own; admins remove any."""
    annotation = trend_annotations(request.access.project).filter(pk=pk).first()
    if annotation is None:
        raise Http404
    if not may_remove(annotation, request.access):
        raise PermissionDenied("Only its author or an admin can remove an annotation.")
    remove_annotation(annotation, by=request.user)
    messages.success(request, "Removed the annotation.")
    return _back(request)


def _find_run(project: Project, number: str) -> Run | None:
    if not number:
        return None
    run = Run.objects.filter(project=project, pk=key_of(number) or 0).select_related("suite").first()
    if run is None:
        raise RequestError(f"There is no run {number[:20]} in this project.")
    return run


def _read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise RequestError("Write the day as in 2026-11-03.") from None


def _back(request: ProjectRequest) -> HttpResponse:
    query = posted_query(request).urlencode()
    return redirect(f"{reverse('trends', args=[request.access.project.slug])}?{query}#annotations")
