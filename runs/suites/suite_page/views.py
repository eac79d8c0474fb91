"""Views of suites: list, detail, settings, proof and version differences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from evalhub.teams import audit
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.middleware import page_or_fragment
from evalhub.web.states import FORMATS
from runs.models import Run
from runs.results.address_filters import AddressFilters, no_match
from runs.results.outcome_history import runs_of_suite_state
from runs.results.run_list import RunRow, read_rows
from runs.results.run_rows import listed_runs
from runs.suites.suite_page import proofs
from runs.suites.suite_page.proofs import SuiteForm
from runs.suites.suite_page.suite_page import (
    Shown,
    change_between,
    find_shown_suite,
    suite_page,
    version_change,
)
from scenarios.commands import quote_lines
from scenarios.differences import fixture_differences
from scenarios.formats.parsed import Problem
from scenarios.forms import UploadForm
from scenarios.models import Suite, SuiteEntry, SuiteVersion

LAYERS = {
    "interaction": "tool",
    "gates": "gates",
    "assertions": "expect",
    "evaluators": "evaluators",
    "judge": "judge",
}
"""Key of a scenario's criteria that enables each layer."""


@dataclass(frozen=True)
class SuiteFilters(AddressFilters):
    """Filters of a query string; an empty text isn't a filter."""

    q: str = ""
    """Part of a suite's name, a scenario's key or a tag."""
    format: str = ""
    tag: str = ""

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Return label and value of the active filters."""
        named = (("text", self.q), ("format", FORMATS.get(self.format, self.format)), ("tag", self.tag))
        return [(name, value) for name, value in named if value]


@dataclass(frozen=True)
class SuiteRow:
    """A suite in the list."""

    suite: Suite
    version: SuiteVersion | None
    scenarios: int
    layers: tuple[str, ...]
    """Layers that any of the version's scenarios uses."""
    latest: RunRow | None
    """Its newest run, without experiments."""
    ran: bool
    """Whether it has any run, experiments included."""

    @property
    def format(self) -> str:
        """Return the format's label."""
        return FORMATS.get(self.suite.format, self.suite.format)


@dataclass(frozen=True)
class SuiteList:
    """The matching suites, and the filters' choices."""

    rows: list[SuiteRow]
    total: int
    formats: list[tuple[str, str]]
    tags: list[str]

    def no_match(self, filters: SuiteFilters) -> str:
        """Return the sentence for filters that match nothing."""
        return no_match("suite", [(name, value, None) for name, value in filters.in_force])


def list_suites_of_project(project: Project, filters: SuiteFilters) -> SuiteList:
    """Return a project's matching suites with their newest version and run. Six queries, one more with a text."""
    newest_version = SuiteVersion.objects.filter(suite=OuterRef("pk")).order_by("-number").values("pk")[:1]
    newest_run = runs_of_suite_state(OuterRef("pk")).values("pk")[:1]
    ran = Exists(Run.objects.filter(suite=OuterRef("pk")))
    rows = Suite.objects.filter(project=project)
    suites = list[Suite](
        rows.annotate(newest=Subquery(newest_version), last_run=Subquery(newest_run), ran=ran)
    )
    newest = _known_values(suites, "newest")
    tags = _tags(newest)
    with_text = _with_text(suites, newest, tags, filters.q)
    chosen = [suite for suite in suites if suite.pk in with_text and _fits(suite, tags[suite.pk], filters)]
    formats = sorted({(suite.format, FORMATS.get(suite.format, suite.format)) for suite in suites})
    known = sorted({tag for suite_tags in tags.values() for tag in suite_tags})
    return SuiteList(_rows(chosen), len(suites), formats, known)


def _known_values(suites: Iterable[Suite], name: str) -> list[int]:
    """Return an annotation's values, without None."""
    return [key for suite in suites if (key := vars(suite)[name]) is not None]


def _tags(versions: list[int]) -> defaultdict[int, Counter[str]]:
    """Return the tags of these versions by their suite's key. One query."""
    rows = SuiteEntry.objects.filter(suite_version__in=versions).order_by()
    counts: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for suite, tags in rows.values_list("suite_version__suite", "scenario_version__content__tags").distinct():
        counts[suite].update(str(tag) for tag in tags or ())
    return counts


def _with_text(
    suites: list[Suite], versions: list[int], tags: defaultdict[int, Counter[str]], text: str
) -> set[int]:
    """Return the keys of the suites with the text in their name, a tag or a scenario's key."""
    if not text:
        return {suite.pk for suite in suites}
    entries = SuiteEntry.objects.filter(
        suite_version__in=versions, scenario_version__scenario__key__icontains=text
    )
    by_key = set(entries.order_by().values_list("suite_version__suite", flat=True).distinct())
    folded = text.casefold()
    return by_key | {
        suite.pk
        for suite in suites
        if any(folded in each.casefold() for each in (suite.name, suite.slug, *tags[suite.pk]))
    }


def _fits(suite: Suite, tags: Counter[str], filters: SuiteFilters) -> bool:
    return (not filters.format or suite.format == filters.format) and (not filters.tag or filters.tag in tags)


def _rows(suites: list[Suite]) -> list[SuiteRow]:
    versions = (
        SuiteVersion.objects.select_related("created_by")
        .defer("targets_text", "solutions", "config", "lints")
        .annotate(size=Count("entries"), **{f"with_{layer}": _with(key) for layer, key in LAYERS.items()})
    )
    newest = {each.pk: each for each in versions.filter(pk__in=_known_values(suites, "newest"))}
    latest = {row.run.id: row for row in read_rows(listed_runs(_known_values(suites, "last_run")))}
    annotated = [(suite, vars(suite)) for suite in suites]
    return [
        _row(suite, newest.get(values["newest"]), latest.get(values["last_run"]), ran=values["ran"])
        for suite, values in annotated
    ]


def _with(key: str) -> Count:
    """Count a version's scenarios whose criteria have this key, without disabled judges.

    Stored contents omit defaults, so an enabled judge has no `enabled`.
    """
    criteria = "entries__scenario_version__content__criteria"
    is_on = Q(**{f"{criteria}__{key}__enabled__isnull": True})
    return Count("entries", filter=is_on & Q(**{f"{criteria}__has_key": key}))


def _row(suite: Suite, version: SuiteVersion | None, latest: RunRow | None, *, ran: bool) -> SuiteRow:
    known = vars(version) if version else {}
    layers = tuple(layer for layer in LAYERS if known.get(f"with_{layer}"))
    return SuiteRow(suite, version, known.get("size", 0), layers, latest, ran)


@require_safe
@project_page()
def suite_list(request: ProjectRequest) -> HttpResponseBase:
    """List the matching suites below the upload form."""
    filters = SuiteFilters.of(request.GET)
    suites = list_suites_of_project(request.access.project, filters)
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
    return proofs.start_proof(request, *_with_version(request, suite_slug))


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
