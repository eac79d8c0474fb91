"""What evalhub does with the files that an agent left takes a limited time, and says what it left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.grading.evaluate import Criteria
from evaluators.grading.gates.command_gates import CommandSucceeds
from runs.engine.workspace.git_settings import GitSettings
from runs.engine.workspace.kept_files import TimeLeft
from runs.engine.workspace.safeguards import WatchedFiles
from runs.engine.workspace.workspace import LocalWorkspace
from runs.results.files.workspace_archive import archive_workspace
from scenarios.spec import ScenarioSpec
from tests.runs.containments import containment

NONE = TimeLeft(0.0)


@pytest.fixture
def workspace(tmp_path: Path) -> LocalWorkspace:
    for name in ("workspace", "scratch"):
        (tmp_path / name).mkdir()
    return LocalWorkspace(tmp_path / "workspace", tmp_path / "scratch", containment())


def watch(workspace: LocalWorkspace) -> WatchedFiles:
    gate = CommandSucceeds(type="command_succeeds", command="sh a.sh && sh b.sh")
    spec = ScenarioSpec(key="a", prompt="x", criteria=Criteria(gates=(gate,)))
    return WatchedFiles.of(spec, workspace, TimeLeft())


def test_a_file_above_64_mb_is_compared_by_size_and_time(workspace: LocalWorkspace) -> None:
    large = workspace.path / "a.sh"
    with large.open("wb") as file:
        file.truncate(4 << 30)
    watched = watch(workspace)
    assert watched.find_changed(TimeLeft()) == ([], 0)
    large.touch()
    assert watched.find_changed(NONE) == (["a.sh"], 0)


def test_files_that_there_is_no_time_to_read_are_counted(workspace: LocalWorkspace) -> None:
    for name in ("a.sh", "b.sh"):
        (workspace.path / name).write_text("exit 1")
    watched = watch(workspace)
    (workspace.path / "a.sh").unlink()
    assert watched.find_changed(NONE) == (["a.sh"], 1)


def test_a_cancelled_trial_ends_the_look(workspace: LocalWorkspace) -> None:
    (workspace.path / "a.sh").write_text("exit 1")
    assert watch(workspace).find_changed(TimeLeft(stopped=lambda: True)) == ([], 1)


def test_settings_of_a_repository_that_is_reached_too_late_go_whole(workspace: LocalWorkspace) -> None:
    for name, text in (("HEAD", "ref: refs/heads/a"), ("config", "[user]\n\tname = a\n")):
        path = workspace.path / "r" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git = GitSettings.of(workspace)
    assert git.clean(NONE) == []
    with (workspace.path / "r/config").open("a") as file:
        file.write("[core]\n\tpager = x\n")
    (workspace.path / "r/hooks").mkdir()
    (workspace.path / "r/hooks/pre-commit").write_text("#!/bin/sh")
    assert sorted(git.clean(NONE)) == ["r/config (whole)", "r/hooks/pre-commit (whole)"]
    assert (workspace.path / "r/config").read_text() == "[user]\n\tname = a\n"
    assert [*(workspace.path / "r/hooks").iterdir()] == []


def test_files_that_it_is_too_late_to_store_are_named(workspace: LocalWorkspace) -> None:
    (workspace.path / "a").write_text("x")
    assert archive_workspace(workspace.path, is_late=lambda: True).left_out == ("a",)
    assert archive_workspace(workspace.path).left_out == ()
