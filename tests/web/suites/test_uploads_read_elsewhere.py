"""Uploads on a server, which another process reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalhub.lib.busy import TryLater, asking_project
from runs.sandbox.reader_processes import BUSY
from scenarios.models import Suite
from scenarios.reading import call_here, set_caller
from tests.web.screen import parse
from tests.web.suites.test_uploads import BAD, GOOD, upload

pytestmark = pytest.mark.one_database


@pytest.mark.usefixtures("read_elsewhere")
def test_an_upload_becomes_a_version(signed_in):
    assert "Uploaded list, version 1" in parse(upload(signed_in("author"), GOOD))
    assert Suite.objects.get().versions.get().entries.count() == 1


@pytest.mark.usefixtures("read_elsewhere")
def test_problems_have_their_place(signed_in):
    text = parse(upload(signed_in("author"), BAD))
    assert "format/unknown-gate" in text and "evaluation.gates[1].type" in text
    assert not Suite.objects.exists()


def test_readers_know_which_project_asks(project, signed_in):
    asked = []

    def note(reader, arguments):
        asked.append(asking_project.get())
        return call_here(reader, arguments)

    set_caller(note)
    upload(signed_in("author"), GOOD)
    set_caller(call_here)
    assert set(asked) == {project.pk}


def refuse(*_):
    """Stand for a server that reads other uploads."""
    raise TryLater(BUSY)


@pytest.fixture
def _busy() -> Iterator[None]:
    set_caller(refuse)
    yield
    set_caller(call_here)


@pytest.mark.usefixtures("_busy")
def test_a_busy_server_says_so(signed_in):
    client = signed_in("author")
    client.raise_request_exception = False
    response = upload(client, GOOD)
    assert response.status_code == 503
    assert BUSY in response.content.decode()
    assert not Suite.objects.exists()
