"""What processes leave of their trials' directories: nothing, however they end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runs.engine.workspace.workspace import own_area

AT_WORK = """
import pathlib, sys
from runs.engine.workspace.workspace import own_area
(own_area(pathlib.Path(sys.argv[1])) / "trial-1").mkdir()
print("at work", flush=True)
sys.stdin.read()
"""


@contextmanager
def at_work(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that has a trial's directory under `root`, and ends when its input does."""
    argv = [sys.executable, "-c", AT_WORK, str(root)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "work"


def trials(root: Path) -> int:
    return len(list(root.glob("*/trial-1")))


def test_a_process_that_ends_takes_its_directory_with_it(root):
    with at_work(root) as process:
        assert trials(root) == 1
        process.communicate()
        assert process.returncode == 0
    assert list(root.iterdir()) == []


def test_leftovers_of_killed_processes_are_removed(root):
    with at_work(root):
        with at_work(root) as lost:
            lost.kill()
            lost.wait()
            assert trials(root) == 2
        area = own_area(root)
        assert trials(root) == 1
        assert area.is_dir()


@pytest.mark.parametrize(("days", "left"), [(6, True), (8, False)])
def test_what_another_machine_left_is_removed_after_a_week(root, days, left):
    area = root / "process-0123456789abcdef@elsewhere.example"
    area.mkdir(parents=True)
    touched = time.time() - days * 24 * 3600
    os.utime(area, (touched, touched))
    own_area(root)
    assert area.exists() is left


def test_it_is_one_for_all_of_a_process_and_for_its_owner_only(root):
    assert own_area(root) == own_area(root)
    assert own_area(root).stat().st_mode & 0o777 == 0o700
    assert own_area(root).stat().st_uid == os.getuid()
