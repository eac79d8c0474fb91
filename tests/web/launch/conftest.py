"""Suites to start: a small one that has not run, and a large one with a history."""

from __future__ import annotations

import pytest

from tests.builders import make_suite, make_target
from tests.runs.past_runs import past_run

KEYS = ("a", "b", "c", "d", "e", "f")


@pytest.fixture
def version(project):
    make_target(project)
    return make_suite(project, ("create", "export"), name="Basics", tags=["smoke"])


@pytest.fixture
def large(project):
    """Return a suite of six scenarios that ran three times on `local`."""
    if not project.targets.exists():
        make_target(project)
    version = make_suite(project, KEYS, name="Large", tags=["smoke"])
    for failing, cost_usd in (("a", 0.09), ("b", 0.1), ("c", 0.11)):
        outcomes = {key: ["fail" if key == failing else "pass"] * 3 for key in KEYS}
        past_run(version, outcomes, cost_usd=cost_usd, seconds=30.0)
    return version
