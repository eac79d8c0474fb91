"""A run to try something in, and a folder for what its trials leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalhub.teams.models import Project
from runs.models import Run
from tests.builders import make_run, make_suite


@pytest.fixture(autouse=True)
def _artifacts(settings: Any, tmp_path: Path) -> None:
    settings.ARTIFACTS_DIR = tmp_path


@pytest.fixture
def run(project: Project) -> Run:
    return make_run(make_suite(project, ("export",), name="Basics"))
