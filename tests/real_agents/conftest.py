"""Every test here runs an installed agent; without one it is skipped."""

from __future__ import annotations

from collections.abc import Iterator
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
LONG = ("two_hundred", "in_a_browser", "time_limit_leaves_a_partial_transcript[opencode]")
"""Parts of the names of tests that take a minute, or begin a group of tests that together do."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark everything here, and sort it after it was shuffled."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("agents")
    yield
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """Which tests come first: at the end of a pass there is nothing to do beside a long one."""
    if not item.path.is_relative_to(HERE):
        return 0
    if any(word in item.name for word in LONG):
        return 1
    return 2 if "opencode" in item.name else 3


@pytest.fixture(autouse=True)
def _installed() -> None:
    if not (PROGRAMS / "codex").exists():
        missing("agents", "The agents are not installed: run `make agents`.")
