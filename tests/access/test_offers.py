"""What a role is offered, it may do: every page is walked, and what it offers is pressed, on a database of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.db import transaction
from django.test import Client

from tests.access.table import PAGES, ROLES, read
from tests.builders import make_member, make_project
from tests.web.screen import Part, parse

pytestmark = pytest.mark.one_database

REFUSED = (403, 404, 405, 500)
MOST_OF_A_KIND = 3
"""Addresses that are walked of one page, which differ in their query."""


def offered_links(page: Part, at: str) -> Iterator[str]:
    """Yield the addresses below its project that a page links to, and those that it fetches."""
    project = "/".join(urlsplit(at).path.split("/")[:3])
    found = [each["href"] for each in page.all("a[href]")] + [each["hx-get"] for each in page.all("[hx-get]")]
    for address in found:
        whole = urljoin(at, address).partition("#")[0]
        if whole.startswith(f"{project}/"):
            yield whole


def offered_forms(page: Part, at: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield each button of the page's forms: where it posts to, and the form's own values with the button's."""
    for form in page.all("form[method=post]"):
        values = list(_values(form))
        buttons = [each for each in form.all("button") if each.get("type") != "button"]
        for button in buttons or [None]:
            given: dict[str, list[str]] = {}
            pressed = [(button["name"], button.get("value") or "")] if button and button.get("name") else []
            for name, value in [*values, *pressed]:
                given.setdefault(name, []).append(value)
            yield urljoin(at, form.get("action") or at).partition("#")[0], given


def _values(form: Part) -> Iterator[tuple[str, str]]:
    for field in form.all("input[name], textarea[name], select[name]"):
        kind = field.get("type") or ""
        if field.node.name == "textarea":
            yield field["name"], field.node.get_text()
        elif field.node.name == "select":
            options = field.all("option")
            chosen = [each for each in options if each.get("selected") is not None] or options[:1]
            yield from ((field["name"], each.get("value") or "") for each in chosen)
        elif kind not in ("checkbox", "radio", "file", "submit") or field.get("checked") is not None:
            yield field["name"], field.get("value") or ""


def first_pages(keys: dict[str, Any]) -> list[str]:
    return [
        page.path.format(**keys)
        for page in PAGES.values()
        if page.method == "GET" and page.path.startswith("/p/")
    ]


def is_new(seen: dict[str, int], address: str) -> bool:
    """Return whether an address is walked: a few of each page, for its filters are many."""
    path = urlsplit(address).path
    seen[path] = seen.get(path, 0) + 1
    return seen[path] <= MOST_OF_A_KIND


Refused = set[tuple[str, int]]
Forms = dict[tuple[str, str], tuple[str, dict[str, list[str]]]]


def walk(client: Client, entrances: list[str]) -> tuple[set[str], Forms, Refused]:
    """Return the addresses reached from some pages, the forms that they offer, and what was refused."""
    seen: dict[str, int] = {}
    queue, walked, refused = deque(entrances), set(entrances), set()
    forms: Forms = {}
    while queue:
        at = queue.popleft()
        response = read(client.get(at, follow=True))
        if response.status_code in REFUSED:
            refused.add((at, response.status_code))
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            continue
        page = parse(response)
        for address in offered_links(page, at):
            if address not in walked and is_new(seen, address):
                walked.add(address)
                queue.append(address)
        for address, given in offered_forms(page, at):
            forms.setdefault((address, repr(sorted(given))), (at, given))
    return walked, forms, refused


def press(client: Client, forms: Forms) -> Refused:
    """Return what was refused of the forms' buttons. Nothing that they change stays."""
    refused = set()
    for (address, _), (at, given) in forms.items():
        if address == "/sign-out/":
            continue
        with transaction.atomic():
            status = read(client.post(address, given)).status_code
            transaction.set_rollback(True)
        if status in REFUSED:
            refused.add((f"{at}: a button to {address}", status))
    return refused


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_is_offered_it_may_do(visitor, keys, role):
    client = visitor(role)
    entrances = [each for each in first_pages(keys) if read(client.get(each)).status_code == 200]
    walked, forms, refused = walk(client, entrances)
    assert len(walked) > len(entrances), "the pages offer nothing, so this test would prove nothing"
    assert refused | press(client, forms) == set()


@pytest.mark.parametrize("role", ROLES)
def test_what_an_empty_project_offers_a_role_may_do(db, role):
    client = Client()
    client.force_login(make_member(make_project("empty"), role))
    walked, forms, refused = walk(client, ["/p/empty/"])
    assert {f"/p/empty/{page}/" for page in ("runs", "suites", "trends", "targets")} <= walked
    assert refused | press(client, forms) == set()
