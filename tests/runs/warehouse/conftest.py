"""A project, and no memory of the measures of another test."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs import measures
from tests.builders import make_project


@pytest.fixture
def project(db: None) -> Project:
    measures.forget()
    return make_project()
