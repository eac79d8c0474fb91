"""A tool that lies in the fixture has versions; its scenarios stay the same."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.compare.comparison import find_incomparable
from runs.engine import run_here
from runs.models import Run
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.runs.carrying import launch, shell_target

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]
SCENARIO = b"""
name: greet
description: The tool greets.
template_folder: box
target:
  binary: ./greeter
task:
  prompt: ./greeter > out.txt
evaluation:
  gates:
    - type: file_contains
      path: out.txt
      substring: hello
"""


def ran(project: Project, script: bytes, *, readme: bytes = b"A box.\n", tool: bytes = b"") -> Run:
    """Return the run of a suite in whose fixture this script is the tool."""
    files = {
        "greet.yaml": SCENARIO.replace(b"binary: ./greeter", b"binary: ./greeter" + tool),
        "templates/box/greeter": b"#!/bin/sh\n" + script + b"\n",
        "templates/box/README.md": readme,
    }
    bundle = Bundle("greeter", files, executables=frozenset(["templates/box/greeter"]))
    (imported,) = import_files(bundle, project=project, by=None)
    run = launch(imported.version, targets=["shell"], trials=6).runs.get()
    run_here.run_here(run.launch)
    run.refresh_from_db()
    return run


@pytest.fixture
def project() -> Project:
    project = make_project()
    shell_target(project)
    return project


def test_two_versions_of_a_script_in_the_fixture_are_compared(project):
    first, second = ran(project, b"echo hello"), ran(project, b"echo goodbye")
    assert first.suite_version != second.suite_version
    assert find_incomparable(first, second) == {}
    assert (second.baseline, second.verdict, second.passed) == (first, "regressed", 0)
    assert first.tool_version.startswith("files ")
    assert first.tool_version != second.tool_version
    assert first.fingerprint["tool_files"] != second.fingerprint["tool_files"]
    assert second.alerts.get().state == "untriaged"


def test_a_version_command_names_the_tool_in_the_fixture(project):
    run = ran(project, b"echo hello 2.1", tool=b"\n  version_command: ./greeter")
    assert run.tool_version == "hello 2.1"
    assert run.fingerprint["tool_files"]


@pytest.mark.slow
def test_other_files_of_the_fixture_are_the_task(project):
    first, second = ran(project, b"echo hello"), ran(project, b"echo hello", readme=b"Another box.\n")
    assert find_incomparable(first, second) == {"greet": ("task",)}
    assert second.verdict == "not_comparable"
    assert first.tool_version == second.tool_version
