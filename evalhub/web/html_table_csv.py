"""Send any table that a page shows as CSV: the cells' text, read from the page itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import slugify
from jinja2 import pass_context
from jinja2.runtime import Context

from evalhub.web.csv_export import TABLE, Table, csv_query, csv_response, wants_csv

_VOID = frozenset(("br", "col", "hr", "img", "input", "link", "meta", "wbr"))
_UNREAD = frozenset(("button", "form", "script", "select", "style", "svg", "template", "textarea"))
_CELLS = frozenset(("td", "th"))


@pass_context
def csv_caption(context: Context, name: str) -> SafeString:
    """Return a table's caption with the link to its CSV; `name` is unique in the page."""
    query = csv_query(context["request"], slugify(name), as_shown=True)
    return format_html(
        '<caption class="csv"><a href="?{}" download>CSV<span class="visually-hidden"> of {}</span></a></caption>',
        query,
        name,
    )


class ShownTables:
    """Turns a page into the table that `?format=csv&table=NAME` asks for, unless the view has sent one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_page = response.status_code == 200 and response.headers.get("Content-Type", "").startswith(
            "text/html"
        )
        if not (is_page and isinstance(response, HttpResponse) and wants_csv(request)):
            return response
        name = request.GET.get(TABLE, "")
        rows = shown_table(response.content.decode(), name)
        if not rows:
            raise Http404
        place = slugify(request.path.removeprefix("/p").replace("/", " "))
        return csv_response(Table(f"{place}-{name}", rows[0], rows[1:]))


def shown_table(page: str, name: str) -> list[tuple[str, ...]]:
    """Return a table's header and rows as they are read; empty if no caption links to the name."""
    reader = _Reader(name)
    reader.feed(page)
    return [tuple(row) for row in reader.found]


class _Shown:
    """A table while it is read."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.is_wanted = False


class _Reader(HTMLParser):
    """Reads the cells of the table whose caption links to `name`; a row of one wide cell is left out."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.found: list[list[str]] = []
        self.tables: list[_Shown] = []
        self.unread: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in _VOID:
            return
        if self.unread or tag in _UNREAD or given.get("aria-hidden") == "true":
            self.unread.append(tag)
            return
        if tag == "table":
            self.tables.append(_Shown())
        if not self.tables:
            return
        table = self.tables[-1]
        if tag == "tr":
            table.rows.append([])
        elif tag in _CELLS and table.rows:
            table.rows[-1].append("")
        elif tag == "time":
            self._add(given.get("datetime") or "")
            self.unread.append(tag)
        elif tag == "a" and not table.rows:
            query = parse_qs(urlsplit(given.get("href") or "").query)
            table.is_wanted |= query.get(TABLE) == [self.name]
        elif tag != "span" or "class" in given:
            self._add(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if self.unread:
            self.unread.pop()
        elif tag == "table" and self.tables:
            table = self.tables.pop()
            if table.is_wanted:
                self.found = [_read(row) for row in table.rows if len(row) == len(table.rows[0])]
        elif tag != "span":
            self._add(" ")

    def handle_data(self, data: str) -> None:
        if not self.unread:
            self._add(data)

    def _add(self, text: str) -> None:
        if self.tables and self.tables[-1].rows and self.tables[-1].rows[-1]:
            self.tables[-1].rows[-1][-1] += text


def _read(row: list[str]) -> list[str]:
    return [re.sub(r"\s+", " ", cell).strip() for cell in row]
