"""The examples' hashes, by which stored runs are compared, stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.bundles import read_path
from scenarios.imports import import_files
from scenarios.models import SuiteVersion
from tests.builders import make_project
from tests.presets.pinned_files import check

EXAMPLES = Path(__file__).parents[2] / "scenarios/examples"
NO_SUITES = ("agents",)


def read_hashes(version: SuiteVersion) -> dict[str, Any]:
    """Return the hashes of a suite version, of its scenarios and of its guidance."""
    entries = version.entries.select_related("scenario_version__scenario", "scenario_version__rubric")
    scenarios = {}
    for stored in (each.scenario_version for each in entries):
        hashes = {"scenario": stored.sha256, "task": stored.task_hash, "gates": stored.gates_hash}
        hashes |= {"judge": stored.judge_hash, "rubric": stored.rubric.sha256 if stored.rubric else ""}
        scenarios[stored.scenario.key] = {name: value for name, value in hashes.items() if value}
    guidance = {"guidance": version.guidance.sha256} if version.guidance else {}
    return {"suite": version.sha256, **guidance, "scenarios": scenarios}


@pytest.mark.one_database
@pytest.mark.django_db
def test_no_hash_of_an_example_changes():
    folders = [each for each in sorted(EXAMPLES.iterdir()) if each.is_dir() and each.name not in NO_SUITES]
    project = make_project()
    imported = [
        each for folder in folders for each in import_files(read_path(folder), project=project, by=None)
    ]
    check("example-hashes", {each.suite.slug: read_hashes(each.version) for each in imported})
