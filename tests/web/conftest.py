"""A client that is somebody, a suite to run, and static files without a manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from django.test import Client

from evalhub.teams.models import Project
from runs.sandbox.reader_processes import ReaderProcesses
from scenarios.models import SuiteVersion
from scenarios.reading import call_here, set_caller
from tests.builders import make_member, make_project, make_suite
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

SILENT_APP = SimpleNamespace(send_task=lambda *args, **kwargs: None)
"""Stands for the Celery application where no worker listens."""


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    """Return the suite Basics, whose scenarios are `create` and `export`."""
    return make_suite(project, ("create", "export"), name="Basics")


@pytest.fixture
def signed_in(project: Project) -> Callable[..., Client]:
    """Return a client of a member with a role, of `project` unless another is given."""

    def sign_in(role: str = "admin", of: Project | None = None) -> Client:
        client = Client()
        client.force_login(make_member(of or project, role))
        return client

    return sign_in


@pytest.fixture
def read_elsewhere() -> Iterator[None]:
    """Read other people's files as a server does, in a process of its own."""
    readers = ReaderProcesses()
    set_caller(readers)
    yield
    set_caller(call_here)
    readers.close()
