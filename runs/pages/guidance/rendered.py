"""Render a guidance document as HTML that is safe to show."""

from __future__ import annotations

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from evalhub.web.sanitize import shown

LONGEST = 100_000
DEEPEST = 6
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
# Without raw HTML and images; the library refuses links with javascript:, vbscript:, file: and data:.


def rendered(text: str) -> SafeString:
    """Return Markdown as HTML; HTML in it is shown as text, and headings start below the page's own."""
    tokens = _markdown.parse(shown(text[:LONGEST]))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(DEEPEST, int(token.tag[1:]) + 2)}"
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "nofollow noreferrer")
    html: str = _markdown.renderer.render(tokens, _markdown.options, {})
    return mark_safe(html)  # noqa: S308
