"""A project with a suite to run."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from scenarios.models import SuiteVersion
from tests.builders import make_project, make_suite


@pytest.fixture
def project(db: None) -> Project:
    return make_project()


@pytest.fixture
def version(project: Project) -> SuiteVersion:
    """Return the suite Basics, whose scenarios are `create` and `export`."""
    return make_suite(project, ("create", "export"), name="Basics")
