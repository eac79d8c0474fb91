"""A command that runs trials by itself, beside a worker, and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.worker.stand import ROOT, Stand, kill_group

SCENARIO = """name: one
description: Waits.
target:
  binary: mt
  env: {{TOKEN: "${{{variable}}}"}}
task:
  prompt: Wait.
evaluation:
  gates: []
"""
TARGETS = "targets:\n  - name: m\n    provider: mock\n    delay_ms: 1500\n"
ONLY_HERE = {"ONLY_IN_THIS_SHELL": "a-secret-of-the-shell", "EVALHUB_ENV_ALLOW": "*:ONLY_IN_THIS_SHELL"}


@pytest.fixture
def suite(tmp_path: Path) -> list[str]:
    folder = tmp_path / "waits"
    folder.mkdir()
    (folder / "one.yaml").write_text(SCENARIO.format(variable="ONLY_IN_THIS_SHELL"))
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return [str(folder), "--targets", str(tmp_path / "targets.yaml"), "--target", "m", "--now"]


def start(stand: Stand, *words: str) -> subprocess.Popen[bytes]:
    """Start a command of a shell that has a variable of its own."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env={**stand.env, **ONLY_HERE},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    stand.processes.append(process)
    return process


def outcomes(stand: Stand) -> list[tuple[int, ...]]:
    return stand.rows("SELECT passed, failed, errors, cancelled, open FROM runs_run")


def number(stand: Stand) -> str:
    """Return the run's number, which need not be 1 in a copied database."""
    return str(stand.one("SELECT id FROM runs_run"))


def is_running(stand: Stand) -> bool:
    return bool(stand.rows("SELECT 1 FROM runs_trial WHERE state = 'running'"))


def killed(stand: Stand, *words: str) -> None:
    """Start a command and kill it in the midst of its second trial."""
    process = start(stand, "run_scenarios", *words)
    stand.until(lambda: bool(stand.rows("SELECT 1 FROM runs_run WHERE passed = 1")) and is_running(stand), 60)
    kill_group(process)


@pytest.mark.slow
def test_workers_leave_its_trials_alone(stand: Stand, suite: list[str]) -> None:
    stand.start_worker()
    process = start(stand, "run_scenarios", *suite, "--trials", "3")
    assert process.wait(60) == 0
    assert outcomes(stand) == [(3, 0, 0, 0, 0)]
    workers = stand.rows("SELECT DISTINCT worker FROM runs_trial")
    assert [name.rpartition(":")[2] for (name,) in workers] == [str(process.pid)]


@pytest.mark.slow
def test_a_killed_one_is_resumed_by_its_shell(stand: Stand, suite: list[str]) -> None:
    stand.start_worker()
    killed(stand, *suite, "--trials", "3")
    # Several leases and ticks, in which a worker without the variable could fail it.
    time.sleep(8)
    assert stand.rows("SELECT state, errors FROM runs_run") == [("running", 0)]
    assert start(stand, "retry_run", number(stand), "--resume", "--now").wait(60) == 0
    assert outcomes(stand) == [(3, 0, 0, 0, 0)]


@pytest.mark.slow
def test_a_worker_with_its_variables_goes_on(stand: Stand, suite: list[str]) -> None:
    killed(stand, *suite, "--trials", "3")
    stand.start_worker(**ONLY_HERE)
    stand.until(lambda: outcomes(stand) == [(3, 0, 0, 0, 0)], 60)


@pytest.mark.slow
def test_a_killed_one_is_cancelled_without_a_worker(stand: Stand, suite: list[str]) -> None:
    killed(stand, *suite, "--trials", "3")
    stand.manage("cancel_run", number(stand), "--json")
    assert outcomes(stand) == [(1, 0, 0, 2, 0)]


@pytest.mark.slow
def test_while_it_lives_nobody_takes_it(stand: Stand, suite: list[str]) -> None:
    process = start(stand, "run_scenarios", *suite, "--trials", "30")
    stand.until(lambda: is_running(stand), 60)
    done = subprocess.run(
        [sys.executable, "manage.py", "retry_run", number(stand), "--resume", "--now"],
        cwd=ROOT,
        env=stand.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"in progress in a command (--now, {os.uname().nodename}:{process.pid})" in done.stderr
    process.send_signal(signal.SIGINT)
    process.wait(30)
