"""What a trial stores about the files that its agent left."""

from __future__ import annotations

import pytest

from evalhub.teams.models import Project
from runs.engine import run_here
from scenarios.formats.parsed import FixtureFile
from scenarios.storing import store_fixture
from tests.runs.carried import one, shell_project
from tests.runs.carrying import launch, suite_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def project() -> Project:
    return shell_project()


def test_a_trial_records_its_workspaces_changes(project):
    files = (FixtureFile("notes.txt", b"one\n"), FixtureFile("old.txt", b"goes\n"))
    version = suite_of(project, edits={"prompt": "echo two >> notes.txt; rm old.txt; echo x > new.txt"})
    version.scenario_versions.update(fixture=store_fixture(project, files))
    run = launch(version, targets=["shell"]).runs.get()
    run_here.run_here(run.launch)
    assert run.trial_set.get().detail["workspace"] == {
        "added": 1,
        "changed": 1,
        "removed": 1,
        "git": 0,
        "files": [
            {"path": "new.txt", "change": "added", "size": 2, "added": 1, "removed": 0},
            {"path": "notes.txt", "change": "changed", "size": 8, "added": 1, "removed": 0},
            {"path": "old.txt", "change": "removed", "size": None, "added": 0, "removed": 1},
        ],
        "left_out": [],
    }


def test_an_emptied_workspace_is_recorded_as_empty(project):
    version = suite_of(project, empties={"prompt": "rm notes.txt"})
    version.scenario_versions.update(fixture=store_fixture(project, (FixtureFile("notes.txt", b"x"),)))
    run = launch(version, targets=["shell"]).runs.get()
    run_here.run_here(run.launch)
    trial = run.trial_set.get()
    assert (trial.detail["workspace"]["removed"], trial.detail["workspace"]["empty"]) == (1, True)
    assert "workspace" not in trial.artifacts.values_list("name", flat=True)


def test_a_file_too_large_to_keep_is_named(project):
    trial = one(project, prompt="head -c 6000000 /dev/zero > large.bin; echo x > small.txt")
    workspace = trial.detail["workspace"]
    assert (workspace["added"], workspace["left_out"]) == (2, ["large.bin"])


def test_lines_are_counted_of_texts_alone_that_are_not_too_long(project):
    prompt = (
        r"printf 'a\nb' > text; printf '\0' > bytes; head -c 200001 /dev/zero | tr '\0' x > long; : > none"
    )
    workspace = one(project, prompt=prompt).detail["workspace"]
    counted = {each["path"]: (each["added"], each["removed"]) for each in workspace["files"]}
    assert counted == {"text": (2, 0), "bytes": (None, None), "long": (None, None), "none": (0, 0)}


def test_files_of_gits_bookkeeping_are_counted_apart(project):
    workspace = one(project, prompt="git init -q . && echo x > new.txt").detail["workspace"]
    assert (workspace["added"], [each["path"] for each in workspace["files"]]) == (1, ["new.txt"])
    assert workspace["git"] > 3
