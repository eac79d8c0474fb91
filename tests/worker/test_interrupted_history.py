"""`make_history` with a second process, when either one is interrupted or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worker.stand import ROOT, Stand

pytestmark = [pytest.mark.slow, pytest.mark.one_database]


def processes_of(stand: Stand) -> dict[int, bytes]:
    """Return the processes that were started with the stand's data directory, with their command lines."""
    word = f"EVALHUB_DATA={stand.data}\0".encode()
    found = {}
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and word in (each / "environ").read_bytes():
                found[int(each.name)] = (each / "cmdline").read_bytes()
        except OSError:
            continue
    return found


def second_process(stand: Stand) -> int:
    (found,) = (process for process, line in processes_of(stand).items() if b"spawn_main" in line)
    return found


def started(stand: Stand) -> subprocess.Popen[bytes]:
    """Start a long history; return its process when the first runs are stored."""
    command = subprocess.Popen(
        [sys.executable, "manage.py", "make_history", "--runs", "5000", "--trials", "1"],
        cwd=ROOT,
        env=stand.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    stand.processes.append(command)
    assert command.stderr is not None
    assert command.stderr.readline() == b"50 of 5000 runs\n"
    return command


@pytest.mark.parametrize("interrupt", [os.killpg, os.kill], ids=["at a terminal", "the command alone"])
def test_ctrl_c_ends_both_processes_with_one_sentence(
    stand: Stand, interrupt: Callable[[int, int], None]
) -> None:
    before = processes_of(stand)
    command = started(stand)
    assert second_process(stand)
    interrupt(command.pid, signal.SIGINT)
    _, said = command.communicate(timeout=60)
    assert (command.returncode, said.splitlines()[-1]) == (130, b"Interrupted.")
    assert b"Traceback" not in said
    stand.until(lambda: processes_of(stand) == before, 20)


def test_a_killed_second_process_is_reported(stand: Stand) -> None:
    before = processes_of(stand)
    command = started(stand)
    os.kill(second_process(stand), signal.SIGKILL)
    _, said = command.communicate(timeout=60)
    assert command.returncode == 2
    assert b"The second process ended early" in said.splitlines()[-1]
    stand.until(lambda: processes_of(stand) == before, 20)
