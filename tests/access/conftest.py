"""Everybody who could ask: nobody, a member of another project, and each role."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from evalhub.teams.models import ApiToken, Project
from tests.access.table import ROLES
from tests.api.samples import make_samples
from tests.builders import make_member, make_project
from tests.kept_rows import kept_rows
from tests.static_files import plain_static_files  # noqa: F401  # a fixture


@pytest.fixture(scope="module")
def samples(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[str, Any]]:
    """Keep one of everything for the whole walk, or it would take four fifths of the time."""
    yield from kept_rows(django_db_blocker, lambda: make_samples(make_project()))


@pytest.fixture
def project(samples: dict[str, Any], db: None) -> Project:
    return Project.objects.get()


@pytest.fixture
def keys(samples: dict[str, Any], project: Project) -> dict[str, Any]:
    """Return one of everything in the project, by the names of addresses."""
    return dict(samples)


def _member(project: Project, who: str) -> Any:
    if who in ROLES:
        return make_member(project, who)
    return make_member(Project.objects.filter(slug="other").first() or make_project("other"), "admin")


@pytest.fixture
def visitor(project: Project) -> Callable[[str], Client]:
    """Return a client of somebody who is signed in, unless it is nobody."""

    def client(who: str) -> Client:
        found = Client()
        if who != "nobody":
            found.force_login(_member(project, who))
        return found

    return client


@pytest.fixture
def program(project: Project) -> Callable[[str], Client]:
    """Return a client with a token of as much as its owner may, unless it is nobody's."""

    def client(who: str) -> Client:
        if who == "nobody":
            return Client()
        member = _member(project, who)
        own = member.memberships.get()
        _, secret = ApiToken.issue(own.project, member, name="walk", role=own.role)
        return Client(headers={"Authorization": f"Bearer {secret}"})

    return client
