"""What the trials of MCP servers share."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from evalhub.teams.models import Project
from tests.builders import make_project
from tests.runs.carrying import shell_target


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    """Let proxies and servers reach servers on loopback, as an operator does with EVALHUB_EGRESS_ALLOW."""
    settings.EGRESS = "full"


@pytest.fixture
def project(transactional_db: None) -> Project:
    """Return a project with the scripted agent as its target."""
    project = make_project()
    shell_target(project, command_template=f"{sys.executable} agent.py {{PROMPT}}")
    return project
