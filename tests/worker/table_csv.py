"""Looks for tables without CSV on the pages of the tour."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urljoin

import httpx
from bs4 import BeautifulSoup, Tag

from tests import tour
from tests.web.screen import text_of

NO_DATA = {
    "Targets": "choices of a form",
    "Detectable change by number of trials, table": "a plan, sent with its form",
    "Planned runs, table": "a plan, sent with its form",
    "Difference of": "a text",
}
"""Labels of tables without CSV, with the reason."""
SHOWS_PATTERNS = "patterns"


@contextmanager
def signed_in(link: str) -> Iterator[httpx.Client]:
    """Give a client that a sign-in link has signed in."""
    with httpx.Client(base_url=link.partition("/sign-in/")[0], timeout=30) as client:
        page = BeautifulSoup(client.get(link).text, "html.parser")
        token = page.select_one("input[name=csrfmiddlewaretoken]")
        assert token
        assert client.post(link, data={"csrfmiddlewaretoken": str(token["value"])}).status_code == 302
        yield client


def label_of(table: Tag) -> str:
    region = table.find_parent(attrs={"role": "region"}) or table
    return str(region.get("aria-label") or "")


def link_of(table: Tag) -> str | None:
    """Return the address of the CSV link in the table's caption, else of the one in its section."""
    section = table.find_parent("section") or table.find_parent("main")
    assert section
    beside = [each for each in section.select("a[download]") if not each.find_parent("table")]
    for link in (*table.select(":scope > caption a[download]"), *beside):
        if text_of(link).startswith("CSV of "):
            return str(link["href"])
    return None


def tables_without_csv(link: str) -> tuple[list[str], int]:
    """Return what is wrong with the CSV of tables on an evalhub with its examples, and the number of tables."""
    with signed_in(link) as client:
        return _without_csv(client)


def _without_csv(client: httpx.Client) -> tuple[list[str], int]:
    pages = {name: at for name, at in (tour.PAGES | tour.MORE_PAGES).items() if name != SHOWS_PATTERNS}
    wrong, seen = [], 0
    for name, address in pages.items():
        page = BeautifulSoup(client.get(address, follow_redirects=True).text, "html.parser")
        for table in page.select("main table"):
            rows = [
                row for row in table.select(":scope > tbody > tr") if not row.select(":scope > [colspan]")
            ]
            label = label_of(table)
            if not rows or label.startswith(tuple(NO_DATA)):
                continue
            seen += 1
            link = link_of(table)
            if link is None:
                wrong.append(f"{name}: {label or text_of(table)[:60]} has no link")
                continue
            answer = client.get(urljoin(address, link))
            found = (
                list(csv.reader(io.StringIO(answer.text, newline=""))) if answer.status_code == 200 else []
            )
            kind = answer.headers["Content-Type"]
            if not re.match("text/csv", kind) or len(found) - 1 < len(rows):
                wrong.append(
                    f"{name}: {label or link}: {answer.status_code} {kind}, {len(found) - 1} of {len(rows)}"
                )
    return wrong, seen
