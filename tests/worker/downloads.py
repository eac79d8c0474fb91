"""Follows the downloads on the pages of the tour."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urljoin

import httpx
from bs4 import BeautifulSoup

from tests import tour
from tests.web.screen import text_of

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


def broken_downloads(link: str) -> tuple[list[str], int]:
    """Return what is wrong with the downloads of an evalhub with its examples, and how many there are."""
    with signed_in(link) as client:
        pages = {name: at for name, at in (tour.PAGES | tour.MORE_PAGES).items() if name != SHOWS_PATTERNS}
        found = [_of_page(client, address) for address in pages.values()]
    return [problem for problems, _ in found for problem in problems], sum(number for _, number in found)


def _of_page(client: httpx.Client, address: str) -> tuple[list[str], int]:
    page = BeautifulSoup(client.get(address, follow_redirects=True).text, "html.parser")
    menus = [each for each in page.select("main details.menu") if text_of(each.summary) == "Download"]
    links = [link for menu in menus for link in menu.select("a[download]")]
    problems = [f"{address} has {len(menus)} menus"] if len(menus) > 1 else []
    for link in links:
        answer = client.get(urljoin(address, str(link["href"])))
        kind = answer.headers["Content-Type"]
        is_table = link.has_attr("data-table")
        if answer.status_code != 200 or not answer.text or is_table != kind.startswith("text/csv"):
            problems.append(f"{address}: {text_of(link)}: {answer.status_code} {kind}")
        elif is_table and not next(csv.reader(io.StringIO(answer.text, newline=""))):
            problems.append(f"{address}: {text_of(link)} has no columns")
    return problems, len(links)
