"""Control groups of trials, where this machine has them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from runs.sandbox.process import run_process
from runs.sandbox.process_tree import (
    ControlGroup,
    GroupLimits,
    find_delegated_group,
    group,
    is_delegated,
    own_group,
)
from runs.sandbox.profiles import AGENT
from runs.sandbox.sandbox import Level
from runs.targets.providers.registry import OPTIONS
from tests.runs.containments import containment

MOUNTS = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
HOG = "held = bytearray(b'x') * (600 << 20); import time; time.sleep(30)"


@pytest.mark.parametrize(
    ("groups", "mounts", "expected"),
    [
        ("0::/system.slice/evalhub.service\n", MOUNTS, "/sys/fs/cgroup/system.slice/evalhub.service"),
        ("0::/\n", MOUNTS, "/sys/fs/cgroup"),
        ("0::/a/b\n", MOUNTS.replace(" / /sys", " /a /sys"), "/sys/fs/cgroup/b"),
        ("4:memory:/x\n", MOUNTS, None),
        ("0::/x\n", "30 1 0:26 / / rw - ext4 /dev/vda rw\n", None),
    ],
    ids=["service", "root", "container", "version 1", "not mounted"],
)
def test_it_finds_its_own_group(groups, mounts, expected):
    assert own_group(groups, mounts) == (Path(expected) if expected else None)


def test_a_group_that_nobody_delegated_is_left_alone(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.procs").write_text("")
    assert not is_delegated(tmp_path)


@pytest.fixture
def unified() -> Iterator[Path]:
    """A group of the unified hierarchy, perhaps without a controller."""
    parent = own_group(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    if parent is None or not os.access(parent, os.W_OK):
        pytest.skip("there is no control group that this user may write to")
    folder = parent / f"evalhub-test-{os.getpid()}"
    folder.mkdir()
    yield folder
    folder.rmdir()


def test_a_group_holds_a_process_and_ends_it(unified):
    with group(GroupLimits(unified)) as made:
        process = subprocess.Popen(["sleep", "65.5"])
        made.add(process.pid)
        assert str(process.pid) in (made.folder / "cgroup.procs").read_text().split()
    assert process.wait(5) != 0
    assert list(unified.glob("trial-*")) == []


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK, Level.LIMITS])
def test_a_command_and_what_it_starts_are_in_its_group(folders, unified, level):
    contained = replace(containment(level), delegated=unified)
    sandbox = contained.around(*folders, profile=replace(AGENT, processes=None, rss_bytes=None))
    seen: set[str] = set()

    def look() -> bool:
        for each in unified.glob("trial-*/cgroup.procs"):
            with suppress(OSError):
                seen.update(Path(f"/proc/{pid}/comm").read_text().strip() for pid in each.read_text().split())
        return False

    result = run_process(
        "sleep 0.7; :", cwd=folders[0], env={}, timeout_seconds=20, sandbox=sandbox, cancelled=look
    )
    assert result.exit_code == 0
    assert {"sh", "sleep"} <= seen
    assert list(unified.glob("trial-*")) == []


def test_it_reads_whether_memory_ran_out(tmp_path):
    assert not ControlGroup(tmp_path).out_of_memory
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n")
    assert ControlGroup(tmp_path).out_of_memory


def test_the_kernel_ends_a_trial_at_its_limit(folders):
    parent = find_delegated_group()
    if parent is None:
        pytest.skip("no control group with memory and pids is delegated to the tests")
    options = OPTIONS["cli"](command_template="x", max_memory_mb=300)
    sandbox = replace(containment(), delegated=parent).for_target(options).around(*folders, profile=AGENT)
    result = run_process(
        [sys.executable, "-IS", "-c", HOG],
        cwd=folders[0],
        env={},
        timeout_seconds=20,
        sandbox=sandbox,
        limits=sandbox.limits,
    )
    assert result.error == "The command used more than 300 MB of memory and was ended."
