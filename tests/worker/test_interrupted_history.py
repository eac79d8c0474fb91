"""`make_history` with a second process, as people start and interrupt it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker.stand import ROOT, Stand


def processes_of(stand: Stand) -> list[int]:
    """Return the processes that were started with the stand's data directory."""
    word = f"EVALHUB_DATA={stand.data}\0".encode()
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit() and _has(each, word)]


def _has(process: Path, word: bytes) -> bool:
    try:
        return word in (process / "environ").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("to_both", [True, False], ids=["at a terminal", "one process"])
def test_ctrl_c_ends_both_processes_with_one_sentence(stand: Stand, *, to_both: bool) -> None:
    before = processes_of(stand)
    command = subprocess.Popen(
        [sys.executable, "manage.py", "make_history", "--runs", "5000", "--trials", "1"],
        cwd=ROOT,
        env=stand.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    stand.processes.append(command)
    assert command.stderr is not None
    assert command.stderr.readline() == "20 of 5000 runs\n"
    assert len(processes_of(stand)) > len(before) + 1
    (os.killpg if to_both else os.kill)(command.pid, signal.SIGINT)
    _, said = command.communicate(timeout=60)
    assert (command.returncode, said.splitlines()[-1]) == (130, "Interrupted.")
    assert "Traceback" not in said
    assert processes_of(stand) == before
