"""Views of suites: list, detail and version differences."""

from __future__ import annotations

from dataclasses import fields

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from evalhub.teams import audit
from evalhub.teams.pages import ProjectRequest, project_page
from evalhub.web.fragments import page_or_fragment
from runs.suites.suite_page import proofs
from runs.suites.suite_page import suite_list as lists
from runs.suites.suite_page.forms import SuiteForm
from runs.suites.suite_page.suite_page import Shown, find_shown_suite, suite_page
from runs.suites.suite_page.versions import change_between, version_change
from scenarios.differences import fixture_differences
from scenarios.formats.problems import Problem
from scenarios.forms import UploadForm
from scenarios.models import Suite, SuiteVersion
from scenarios.quoting import quote_lines


@require_safe
@project_page()
def suite_list(request: ProjectRequest) -> HttpResponseBase:
    """List the matching suites below the upload form."""
    filters = lists.SuiteFilters.of(request.GET)
    suites = lists.list_suites_of_project(request.access.project, filters)
    context = {
        "suites": suites,
        "filters": filters,
        "form": UploadForm(),
        "may_upload": request.access.may("upload"),
    }
    return page_or_fragment(request, "suites/suites/suites.html", "suites/suites/_suite_table.html", context)


def find_suite_or_404(request: ProjectRequest, slug: str) -> Suite:
    """Return the project's suite. Raises `Http404`."""
    suite = find_shown_suite(request.access.project, slug)
    if suite is None:
        raise Http404
    return suite


@require_safe
@project_page()
def suite_detail(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Show a suite's scenarios with their last trials, its versions and the hints of its files."""
    suite = find_suite_or_404(request, suite_slug)
    shown = Shown(**{each.name: request.GET.get(each.name, "") for each in fields(Shown)})
    if request.htmx and request.htmx.target == "versions":
        context = {"suite": suite, "change": version_change(suite, shown.version), "shown": shown}
        return page_or_fragment(request, "suites/suites/suite.html", "suites/suites/_versions.html", context)
    if request.htmx and request.htmx.target == "proof":
        return proofs.proof_part(request, suite)
    page = suite_page(suite, shown)
    lints = [Problem(**lint) for lint in page.version.lints] if page.version else []
    context = {
        "page": page,
        "proof": page.proof,
        "suite": suite,
        "change": page.change,
        "shown": shown,
        "lines": page.chosen(shown),
        "chips": page.chips(shown),
        "hints": quote_lines(lints, {}),
        "baselines": list(suite.baselines.select_related("target", "by").order_by("target__name", "branch")),
        "may_upload": request.access.may("upload"),
        "may_run": request.access.may("run"),
        "may_triage": request.access.may("triage"),
    }
    return page_or_fragment(request, "suites/suites/suite.html", "suites/suites/_scenarios.html", context)


@require_POST
@project_page("run")
def suite_prove(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Request a proof of a suite's newest version."""
    return proofs.prove(request, *_with_version(request, suite_slug))


def _with_version(request: ProjectRequest, slug: str) -> tuple[Suite, SuiteVersion]:
    """Return a suite and its newest version. Raises `Http404`."""
    suite = find_suite_or_404(request, slug)
    version = suite.versions.select_related("suite__project").first()
    if version is None:
        raise Http404
    return suite, version


@require_POST
@project_page("upload")
def suite_settings(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Save a suite's release rule, and whether its runs run scenarios again that look worse."""
    suite, form = find_suite_or_404(request, suite_slug), SuiteForm(request.POST)
    if form.is_valid():
        k, percent = form.cleaned_data["k"], form.cleaned_data["percent"]
        suite.release_k, suite.release_threshold = k, percent and percent / 100
        suite.retests = form.cleaned_data["retests"]
        with transaction.atomic():
            suite.save(update_fields=["release_k", "release_threshold", "retests"])
            audit.append_event(suite.project, request.user, "suite.change", suite.slug, **form.cleaned_data)
        messages.success(request, "Saved the settings. Runs follow them from now on.")
    else:
        messages.error(request, " ".join(str(each[0]) for each in form.errors.values()))
    return redirect(suite.get_absolute_url() + "#settings")


@require_safe
@project_page()
def suite_difference(request: ProjectRequest, suite_slug: str) -> HttpResponse:
    """Show a version's changes line by line, since the version before or `since`, of one scenario or of the first ones."""
    suite = find_suite_or_404(request, suite_slug)
    since, version = (request.GET.get(name, "") for name in ("since", "version"))
    change = change_between(suite, since, version) or version_change(suite, version, whole=True)
    every = change.difference.scenarios if change.difference else ()
    key = request.GET.get("scenario", "")
    # Scenarios whose lines are on one page; the others are links.
    chosen = [each for each in every if each.key == key] if key else every[:20]
    rest = [each for each in every if each not in chosen]
    files = fixture_differences(change.before, change.after) if change.before and change.after else []
    context = {"suite": suite, "change": change, "shown": chosen, "rest": rest, "files": files}
    return render(request, "suites/suites/difference.html", context)
