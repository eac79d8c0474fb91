"""Gates and scripts see nothing that the agent left in its home, its temporary folder or its environment."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from runs.engine.workspace.workspace import LocalWorkspace
from runs.sandbox.sandbox import Level
from tests.runs.containments import containment

LEVELS = [Level.BWRAP, Level.LANDLOCK, Level.LIMITS, Level.OFF]
OURS = {"PATH", "HOME", "TMPDIR", "LANG", "GIT_CONFIG_NOSYSTEM"}
BY_SHELLS = {"PWD", "SHLVL", "_", "OLDPWD"}
PLANT = """
git config --global alias.st '!echo forged'
echo 'echo forged' > "$HOME/.profile"
mkdir -p "$HOME/.config/git" && git config -f "$HOME/.config/git/config" core.pager 'echo forged'
touch "$TMPDIR/planted"
"""


def workspace(folders: tuple[Path, Path], level: Level, **env: str) -> LocalWorkspace:
    return LocalWorkspace(*folders, containment(level), env=env)


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_of_the_agents_home_reaches_a_gate(folders, level, monkeypatch, tmp_path):
    # Without a sandbox, a setup command has the home of the person on the machine.
    monkeypatch.setenv("HOME", str(tmp_path))
    place = workspace(folders, level)
    place.run_setup([PLANT])
    printed = place.run('ls -A "$HOME" "$TMPDIR"; git config --list; git st', timeout_seconds=20)
    assert not {"planted", "forged", ".profile", ".config", ".gitconfig"} & set(printed.stdout.split())
    assert "alias.st" not in printed.stdout
    assert printed.exit_code != 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_gate_has_no_other_variables(folders, level, monkeypatch):
    monkeypatch.setenv("WORKERS_OWN", "1")
    place = workspace(folders, level, OF_TARGET="2")
    printed = place.run("env", timeout_seconds=20, env={"OF_GATE": "3"}).stdout
    names = {line.partition("=")[0] for line in printed.splitlines()}
    assert names - BY_SHELLS - {"EVALHUB_PROCESS"} == {*OURS, "OF_TARGET", "OF_GATE"}


@pytest.mark.parametrize("level", LEVELS)
def test_two_gates_share_no_home(folders, level):
    place = workspace(folders, level)
    place.run('touch "$HOME/left" "$TMPDIR/left"', timeout_seconds=20)
    assert place.run('ls -A "$HOME" "$TMPDIR" | grep left', timeout_seconds=20).exit_code == 1


@pytest.mark.parametrize("level", LEVELS)
def test_a_path_of_the_worker_that_leads_to_the_workspace_is_left_out(folders, level):
    contained = containment(level)
    place = LocalWorkspace(*folders, replace(contained, path=f".:bin::{os.environ['PATH']}"))
    (folders[0] / "grep").write_text("#!/bin/sh\necho forged\n")
    (folders[0] / "grep").chmod(0o755)
    printed = place.run("echo right | grep right", timeout_seconds=20)
    assert printed.stdout == "right\n"


@pytest.mark.parametrize("level", LEVELS)
def test_a_scenario_may_put_the_workspace_on_path(folders, level):
    place = workspace(folders, level, PATH=f".:{os.environ['PATH']}", HOME="/nowhere")
    (folders[0] / "mine").write_text("#!/bin/sh\necho $HOME\n")
    (folders[0] / "mine").chmod(0o755)
    assert place.run("mine", timeout_seconds=20).stdout == "/nowhere\n"
