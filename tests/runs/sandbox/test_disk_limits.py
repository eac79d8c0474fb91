"""What a command may write: to disk together, to memory that is not counted nothing."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT, COMMAND, Profile
from runs.sandbox.sandbox import Level
from tests.runs.containments import containment

FILL = """
import os, time
for folder in {folders}:
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
for number in range(10):
    with open(str(number), "wb") as file:
        file.write(b"x" * (2 << 20))
time.sleep(30)
"""


def fill(folders, level: Level, profile: Profile, *names: str) -> ProcessResult:
    """Fill the last of these folders, each in the one before, at a limit of 5 MB."""
    workspace, scratch = folders
    sandbox = containment(level).around(workspace, scratch, profile=replace(profile, disk_bytes=5 << 20))
    places = [sandbox.inside(scratch) if name == "scratch" else name for name in names]
    words = [sys.executable, "-c", FILL.format(folders=places)]
    return run_process(
        words, cwd=workspace, env={}, timeout_seconds=20, limits=sandbox.limits, sandbox=sandbox
    )


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
@pytest.mark.parametrize("profile", [AGENT, COMMAND], ids=["agent", "command"])
@pytest.mark.parametrize(
    "names", [["files"], ["scratch"], ["n" * 200] * 25], ids=["workspace", "scratch", "deep"]
)
def test_everything_that_a_command_writes_to_disk_is_limited(folders, level, profile, names):
    assert "wrote more than 5 MB to disk" in fill(folders, level, profile, *names).error


def test_the_limit_counts_all_folders_together(folders):
    workspace, scratch = folders
    limits = containment(Level.BWRAP).around(workspace, scratch).limits
    limits = replace(limits, disk_bytes=5 << 20)
    for folder in folders:
        (folder / "file").write_bytes(b"x" * (3 << 20))
    ended = run_process("sleep 20", cwd=workspace, env={}, timeout_seconds=20, limits=limits)
    assert "wrote more than 5 MB to disk" in ended.error


@pytest.mark.parametrize("profile", [AGENT, COMMAND], ids=["agent", "command"])
def test_files_in_dev_cannot_fill_the_memory(folders, profile):
    workspace, scratch = folders
    sandbox = containment(Level.BWRAP).around(workspace, scratch, profile=profile)
    command = "echo x > /dev/null && echo x > /dev/shm/file && ! echo x > /dev/file"
    ended = run_process(command, cwd=workspace, env={}, timeout_seconds=20, sandbox=sandbox)
    assert ended.exit_code == 0
    assert b"Read-only file system" in ended.stderr
