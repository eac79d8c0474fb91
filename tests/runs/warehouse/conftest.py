"""A project, and no memory of the measures of another test."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.measures import measure_id
from tests.builders import make_project


@pytest.fixture
def project(db: None) -> Project:
    measure_id.cache_clear()
    return make_project()
