"""Every page, asked for by everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.access.table import ANYONE, PAGES, ROLES, SIGNED_IN, read

pytestmark = pytest.mark.one_database


def page_names(patterns: Any) -> Iterator[str | None]:
    """Give the name of every address but those of the REST interface."""
    for each in patterns:
        if isinstance(each, URLPattern):
            yield each.name
        elif isinstance(each, URLResolver) and each.namespace != "api":
            yield from page_names(each.url_patterns)


def ask(client: Any, name: str, keys: dict[str, Any]) -> Any:
    page = PAGES[name]
    return read(client.generic(page.method, page.path.format(**keys)))


def allowed(role: str, least: str) -> bool:
    return least not in ROLES or ROLES.index(role) >= ROLES.index(least)


def test_every_address_is_in_the_table():
    assert set(page_names(get_resolver().url_patterns)) == set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_strangers_see_only_public_pages(visitor, keys, name):
    response = ask(visitor("nobody"), name, keys)
    if PAGES[name].least == ANYONE:
        assert response.status_code in PAGES[name].answers
    else:
        assert response.status_code == 302
        assert response.url.startswith("/sign-in/?next=")


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if page.least in ROLES])
def test_a_member_of_another_project_sees_nothing(visitor, keys, name):
    assert ask(visitor("stranger"), name, keys).status_code == 404


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", PAGES)
def test_a_member_sees_what_the_role_may(visitor, keys, name, role):
    page = PAGES[name]
    response = ask(visitor(role), name, keys)
    if page.least in (ANYONE, SIGNED_IN) and name == "sign-in":
        assert response.status_code == 302, "who is signed in already is led on"
    elif allowed(role, page.least):
        assert response.status_code in page.answers
    else:
        assert response.status_code == 403
