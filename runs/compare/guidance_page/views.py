"""Views of guidance: its list, a version and a comparison, with their tables as CSV and the sentence that answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from markdown_it import MarkdownIt

from evalhub.lib.limits import LONGEST_TEXT
from evalhub.lib.numbers import format_count, format_percent
from evalhub.teams.access import ProjectRequest, project_page
from evalhub.teams.models import Project
from evalhub.web.csv_export import Table, chosen_table
from evalhub.web.middleware import page_or_fragment
from evalhub.web.paging import key_of, page_below
from evalhub.web.sanitize import show_text
from evaluators.statistics.measure_change import UNDECIDED, ChangeVerdict
from evaluators.tool_use.exposure import estimated_tokens
from runs.compare.guidance.guidance_matrix import (
    ComparedVersion,
    GuidanceStrip,
    guidance_matrix,
    guidance_strip,
)
from runs.compare.guidance_page.against import (
    GuidanceAgainst,
    guidance_against,
    heat_rows,
    shown_versions,
    strip_rows,
)
from runs.compare.measure_changes import PASS
from runs.compare.shown_changes import measure_table, shown_verdict
from runs.models import Run
from runs.results.run_list import runs_of
from scenarios.adopted_guidance import AdoptionRefused, adopt_guidance, last_guidance
from scenarios.models import Guidance, Suite
from scenarios.naming import NameRefused, rename_guidance

SCENARIO_COLUMNS = (
    *("scenario", "a", "b", "difference", "a_trials", "b_trials"),
    *("a_judge", "a_reasons", "b_judge", "b_reasons"),
)


def guidance_scenario_table(page: GuidanceAgainst) -> Table:
    """Return the scenarios of both versions by change; the judge's reasons are those that the page shows."""
    rows = (
        (
            *(shown.label, change.before, change.after, change.effect, *change.trials),
            *(
                cell
                for found in (side.get(shown.label) for side in page.reasons)
                for cell in ((found.score, found.text) if found else (None, None))
            ),
        )
        for shown in page.scenarios
        for change in [shown.change]
    )
    return Table(f"{page.name}-scenarios", SCENARIO_COLUMNS, rows)


MOST_RUNS = 30
MOST_OTHERS = 100
DEEPEST = 6
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
# Without raw HTML and images; the library refuses links with javascript:, vbscript:, file: and data:.


@dataclass(frozen=True)
class ShownDocument:
    """A document as text and rendered."""

    path: str
    text: str

    @property
    def html(self) -> SafeString:
        return render_markdown(self.text)

    @property
    def tokens(self) -> int:
        return estimated_tokens(self.text)


@dataclass(frozen=True)
class GuidancePage:
    """Content of a version's page."""

    guidance: Guidance
    documents: Sequence[ShownDocument]
    runs: Sequence[Run]
    """The newest runs that had it."""
    run_count: int
    laid_by: Run | None
    """The first run that had it, for a document that came with a run."""
    others: Sequence[Guidance]
    """The suite's other versions, newest first."""


def guidance_versions(suite: Suite) -> QuerySet[Guidance]:
    """Return a suite's guidance versions with their number of runs, newest first."""
    versions = suite.guidance.select_related("suite", "created_by").annotate(run_count=Count("runs"))
    return versions.order_by("-pk")


def find_guidance(project: Project, *keys: int) -> list[Guidance]:
    """Return a project's guidance versions in the order of their keys, without unknown ones. One query."""
    rows = Guidance.objects.select_related("suite__project", "created_by")
    by_key = {each.pk: each for each in rows.filter(suite__project=project, pk__in=keys)}
    return [by_key[key] for key in keys if key in by_key]


def guidance_page(guidance: Guidance) -> GuidancePage:
    """Return a version's page. Four queries."""
    project = guidance.suite.project
    runs = runs_of(project).filter(guidance=guidance)
    first = runs.order_by("pk").first() if guidance.laid_path else None
    others = guidance.suite.guidance.exclude(pk=guidance.pk).defer("files").order_by("-number")
    return GuidancePage(
        guidance,
        [ShownDocument(each["path"], each["content"]) for each in guidance.files],
        list(runs.order_by("-pk")[:MOST_RUNS]),
        runs.count(),
        first,
        list(others[:MOST_OTHERS]),
    )


def render_markdown(text: str) -> SafeString:
    """Return Markdown as HTML; HTML in it is shown as text, and headings start below the page's own."""
    tokens = _markdown.parse(show_text(text[:LONGEST_TEXT]))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(DEEPEST, int(token.tag[1:]) + 2)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "nofollow noreferrer")
    html: str = _markdown.renderer.render(tokens, _markdown.options, {})
    return mark_safe(html)  # noqa: S308


MOST_NAMES = 2


@dataclass(frozen=True)
class GuidanceAnswer:
    """The answer as a title and a sentence; of the next steps at most one is set."""

    title: str
    sentence: str
    adopt: Guidance | None = None
    """The version to adopt."""
    run: tuple[Guidance, ...] = ()
    """Versions to run together."""
    edit: Guidance | None = None
    """The version whose text to change next."""


def answer_of_strip(strip: GuidanceStrip, stored: Iterable[Guidance]) -> GuidanceAnswer:
    """Return which version is best: one that improved on what the suite uses, else what it uses if all else regressed.

    `stored` are the newest versions, also those that never ran.
    """
    adopted, versions = strip.adopted, [each.guidance for each in strip.versions]
    untried = [each for each in stored if each not in versions and each != adopted]
    if not versions:
        first = [adopted] if adopted else []
        return GuidanceAnswer(
            "No run had guidance yet",
            "Run the suite to see how it does.",
            run=tuple([*first, *untried][:MOST_NAMES]),
        )
    newest = versions[-1]
    if adopted is None:
        return GuidanceAnswer(
            "The suite uses no guidance",
            f"{format_count(len(versions), 'version')} ran in experiments.",
            run=(newest,),
        )
    if adopted not in versions:
        return GuidanceAnswer(
            f"{adopted} has not run here",
            "The suite uses it, so nothing shows how good it is.",
            run=(adopted,),
        )
    if len(versions) == 1:
        title, sentence = f"Only {adopted} has run", "Run another text to see whether it is better."
        if untried:
            return GuidanceAnswer(title, sentence, run=(adopted, untried[0]))
        return GuidanceAnswer(title, sentence, edit=adopted)
    return _answer_against(strip, adopted)


def _answer_against(strip: GuidanceStrip, adopted: Guidance) -> GuidanceAnswer:
    """Return the answer where the adopted version and others ran."""
    compared = list(strip.against_adopted.values())
    better = [each for each in compared if each.verdict is ChangeVerdict.IMPROVED]
    if better:
        best = max(better, key=_pass_rate)
        return GuidanceAnswer(
            f"{best.after} is the best {strip.document} so far",
            f"{_size(best)} {adopted}, which the suite uses.",
            adopt=best.after,
        )
    others = [each.guidance for each in strip.versions if each.guidance != adopted]
    open_ones = [
        version
        for version in others
        if version.pk not in strip.against_adopted
        or strip.against_adopted[version.pk].verdict in (None, *UNDECIDED)
    ]
    worse = [each for each in compared if each.verdict is ChangeVerdict.REGRESSED]
    if len(worse) == len(others):
        title = f"{adopted} is the best {strip.document} so far"
        every = "The other version" if len(worse) == 1 else f"All {len(worse)} other versions"
        return GuidanceAnswer(title, f"The suite uses it. {every} regressed.", edit=adopted)
    title = f"No version is known to be better than {adopted}"
    if open_ones:
        few = len(open_ones) <= MOST_NAMES
        names = ", ".join(map(str, open_ones)) if few else f"{len(open_ones)} other versions"
        return GuidanceAnswer(title, f"The suite uses it. Undecided: {names}.", run=(adopted, open_ones[-1]))
    return GuidanceAnswer(title, "The suite uses it.", edit=adopted)


def _pass_rate(compared: ComparedVersion) -> float:
    change = compared.change(PASS)
    return (change.effect or 0.0) if change else 0.0


def _size(compared: ComparedVersion) -> str:
    """Return by how much a version improved, up to the name of what it is compared with."""
    change = compared.change(PASS)
    if change and change.verdict is ChangeVerdict.IMPROVED:
        return f"{format_percent(change.after)} pass, against {format_percent(change.before)} with"
    shown = shown_verdict(compared.findings.compared.headline)
    return f"{shown.deciding.label} {shown.deciding.size} against" if shown else "It improved on"


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
