"""Every test here runs an installed agent; without one it is skipped."""

from __future__ import annotations

from collections.abc import Iterator

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

HERE = "tests/real_agents/"


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark everything here, and put short tests last after all were shuffled."""
    for item in items:
        if item.nodeid.startswith(HERE):
            item.add_marker("agents")
    yield
    items.sort(key=_is_short)


def _is_short(item: pytest.Item) -> bool:
    """Return whether a test is of a quick agent only; at the end of a pass nothing runs beside a long one."""
    return item.nodeid.startswith(HERE) and any(kind in item.name for kind in ("codex", "claude_code"))


@pytest.fixture(autouse=True)
def _installed(request: pytest.FixtureRequest) -> None:
    if "test_other_programs" not in request.node.nodeid and not PROGRAMS.is_dir():
        missing("agents", "The agents are not installed: run `make agents`.")
