"""Suites: the list with its upload, and one of them."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import page_or_fragment
from runs.warehouse.suites import suite_page, suite_rows
from scenarios.formats.problems import Problem
from scenarios.forms import UploadForm
from scenarios.models import Suite
from scenarios.quoting import quoted


@require_GET
@project_page()
def suite_list(request: ProjectRequest) -> HttpResponse:
    """List the project's suites under the form that takes new ones."""
    context = {
        "suites": suite_rows(request.access.project),
        "form": UploadForm(),
        "may_upload": request.access.may("upload"),
    }
    return render(request, "runs/suite_list.html", context)


@require_GET
@project_page()
def suite_detail(request: ProjectRequest, suite: str) -> HttpResponse:
    """Show a suite's scenarios with their last trials, its versions and the hints of its files."""
    found = get_object_or_404(Suite, project=request.access.project, slug=suite)
    page = suite_page(found, request.GET.get("target", ""))
    show, tag = request.GET.get("show", ""), request.GET.get("tag", "")
    lints = [Problem(**lint) for lint in page.version.lints] if page.version else []
    context = {
        "page": page,
        "lines": page.chosen(show, tag),
        "chips": page.chips(show, tag),
        "hints": quoted(lints, {}),
        "baselines": found.baselines.select_related("target", "by").order_by("target__name", "branch"),
        "may_upload": request.access.may("upload"),
        "may_triage": request.access.may("triage"),
    }
    return page_or_fragment(request, "runs/suite_detail.html", "runs/_suite_scenarios.html", context)
