"""One evalhub for each test."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection

from tests.heartbeats import end_heartbeats
from tests.services.servers import new_database
from tests.worker.stand import Stand

HERE = "tests/worker/"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # What brings its own database is the same on every pass.
        if item.nodeid.startswith(HERE) and "stand" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.worker)
            # pytest-django makes the test database, which is copied, only where a test has this mark.
            item.add_marker(pytest.mark.django_db)


@pytest.fixture(scope="session")
def migrated(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the address of a migrated database without rows, for stands to copy: migrating takes seconds."""
    asked = os.environ.get("DATABASE_URL", "")
    name = str(connection.settings_dict["NAME"])
    if asked.startswith("postgresql:"):
        # Nobody may be connected to what is copied.
        end_heartbeats()
        connection.close()
        return new_database(asked, f"migrated_{uuid.uuid4().hex[:12]}", name)
    file = tmp_path_factory.mktemp("migrated") / "evalhub.sqlite3"
    with closing(sqlite3.connect(name)) as whole, closing(sqlite3.connect(file)) as copy:
        whole.backup(copy)
    return f"sqlite:///{file}"


@pytest.fixture
def stand(tmp_path: Path, migrated: str) -> Iterator[Stand]:
    """Give an evalhub whose broker runs and whose database is migrated; everything is gone after the test."""
    made = Stand(tmp_path, f"stand_{uuid.uuid4().hex[:12]}", migrated)
    try:
        made.start_broker()
        yield made
    finally:
        made.stop()
