"""Read guidance versions for their list and their pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from evalhub.lib.limits import LONGEST_TEXT
from evalhub.teams.models import Project
from evalhub.web.sanitize import show_text
from evaluators.tool_use.exposure import estimated_tokens
from runs.models import Run
from runs.results.run_list import runs_of
from scenarios.models import Guidance, Suite

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
