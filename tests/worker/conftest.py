"""One evalhub for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.stand import Stand

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # What brings its own database is the same on every pass.
        if HERE in item.path.parents and "stand" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.worker)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the address of a migrated database, made once, for stands to copy."""
    made = Stand(tmp_path_factory.mktemp("migrated"), f"migrated_{uuid.uuid4().hex[:12]}")
    made.manage("migrate", "--verbosity", "0")
    made.stop()
    return made.database


@pytest.fixture
def stand(tmp_path: Path, migrated: str) -> Iterator[Stand]:
    """Give an evalhub whose broker runs and whose database is migrated; everything is gone after the test."""
    made = Stand(tmp_path, f"stand_{uuid.uuid4().hex[:12]}", migrated)
    try:
        made.start_broker()
        yield made
    finally:
        made.stop()
