"""An evalhub on PostgreSQL and Redis of its own, which tests stop, kill and starve."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import missing
from tests.services.servers import NotHere, PostgresServer, postgres_server
from tests.worker.stand import Stand

HERE = "tests/faults/"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(HERE):
            item.add_marker(pytest.mark.fault)
            item.add_marker(pytest.mark.own_servers)


@pytest.fixture(scope="session")
def database_server() -> Iterator[PostgresServer]:
    try:
        with postgres_server() as server:
            yield server
    except NotHere as error:
        missing("postgres", str(error))


@pytest.fixture(scope="session")
def migrated(database_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the address of a migrated database for stands to copy."""
    made = Stand(tmp_path_factory.mktemp("migrated"), "migrated", server=database_server.url)
    made.manage("migrate", "-v0")
    return made.database


@pytest.fixture
def stand(tmp_path: Path, database_server: PostgresServer, migrated: str) -> Iterator[Stand]:
    """Give an evalhub whose broker runs and whose database is migrated; everything is gone after the test."""
    made = Stand(tmp_path, f"fault_{uuid.uuid4().hex[:12]}", migrated, database_server.url)
    try:
        made.start_broker()
        yield made
    finally:
        made.stop()
