"""Every test here runs an installed agent; without one it is skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import (  # noqa: F401  # fixtures
    as_admin,
    base_url,
    browser_type_launch_args,
    complaints,
    live_server,
    project,
)
from tests.real_agents.real import PROGRAMS
from tests.requirements import missing

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("agents")


@pytest.fixture(autouse=True)
def _installed() -> None:
    if not (PROGRAMS / "codex").exists():
        missing("agents", "The agents are not installed: run `make agents`.")
