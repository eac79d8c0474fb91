"""Uploads on a server, which another process reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evalhub.lib.busy import TryLater
from runs.sandbox.reader_processes import BUSY, ReaderProcesses
from scenarios.models import Suite
from scenarios.reading import ReaderHere, set_reader
from tests.web.screen import parse
from tests.web.suites.test_uploads import BAD, GOOD, upload

pytestmark = pytest.mark.one_database


@pytest.fixture(scope="module")
def readers() -> Iterator[ReaderProcesses]:
    readers = ReaderProcesses()
    yield readers
    readers.close()


@pytest.fixture
def elsewhere(readers: ReaderProcesses) -> Iterator[None]:
    """Read uploads as a server does."""
    set_reader(readers)
    yield
    set_reader(ReaderHere())


@pytest.mark.usefixtures("elsewhere")
def test_an_upload_becomes_a_version(signed_in):
    assert "Uploaded list, version 1" in parse(upload(signed_in("author"), GOOD))
    assert Suite.objects.get().versions.get().entries.count() == 1


@pytest.mark.usefixtures("elsewhere")
def test_problems_have_their_place(signed_in):
    text = parse(upload(signed_in("author"), BAD))
    assert "format/unknown-gate" in text and "evaluation.gates[1].type" in text
    assert not Suite.objects.exists()


class AlwaysBusy(ReaderHere):
    """Stands for a server that reads other uploads."""

    def read_suites(self, *_, **__):
        raise TryLater(BUSY)


@pytest.fixture
def _busy() -> Iterator[None]:
    set_reader(AlwaysBusy())
    yield
    set_reader(ReaderHere())


@pytest.mark.usefixtures("_busy")
def test_a_busy_server_says_so(signed_in):
    client = signed_in("author")
    client.raise_request_exception = False
    response = upload(client, GOOD)
    assert response.status_code == 503
    assert BUSY in response.content.decode()
    assert not Suite.objects.exists()
