"""A database that goes away for a moment costs no agent's work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.services.servers import PostgresServer
from tests.worker.stand import Stand

SCENARIO = """name: {name}
description: Takes a while.
task:
  prompt: {command}
evaluation:
  gates:
    - type: command_succeeds
      command: test -d .
"""
TARGETS = """
targets:
  - name: shell
    provider: cli
    command_template: sh -c {PROMPT}
"""


def start_run(stand: Stand, folder: Path, *, trials: int, concurrency: int, command: str = "sleep 4") -> None:
    """Request a run each of whose agents executes this shell command."""
    suite = folder / "slow"
    suite.mkdir()
    (suite / "one.yaml").write_text(SCENARIO.format(name="one", command=command))
    (folder / "targets.yaml").write_text(TARGETS)
    words = ["--targets", str(folder / "targets.yaml"), "--target", "shell", "--json"]
    words += ["--trials", str(trials), "--concurrency", str(concurrency)]
    stand.manage("run_scenarios", str(suite), *words)


def has_lines(path: Path, count: int) -> bool:
    return path.exists() and len(path.read_text().splitlines()) == count


@pytest.mark.starts_first
def test_no_trial_runs_again_when_the_database_restarts(
    stand: Stand, tmp_path: Path, database_server: PostgresServer
):
    stand.env["EVALHUB_LEASE_SECONDS"] = "20"
    # The agents tell and hear of the rounds by files outside their folders.
    stand.env |= {"EVALHUB_SANDBOX": "off", "EVALHUB_EGRESS": "full"}
    stand.start_worker(threads=10)
    started, released, ended = tmp_path / "started", tmp_path / "released", tmp_path / "ended"
    command = f"echo >> {started}; until test -e {released}; do sleep 0.2; done; echo >> {ended}"
    start_run(stand, tmp_path, trials=20, concurrency=10, command=command)
    for count in (10, 20):
        stand.until(lambda: has_lines(started, count), 40)  # noqa: B023
        stand.forget_connection()
        database_server.stop()
        released.touch()
        stand.until(lambda: has_lines(ended, count), 20)  # noqa: B023
        time.sleep(1)
        released.unlink()
        database_server.start()
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
    assert stand.rows("SELECT passed, errors, open FROM runs_run") == [(20, 0, 0)]
    assert stand.rows("SELECT starts, count(*) FROM runs_trial GROUP BY starts") == [(1, 20)]
    assert stand.one("SELECT count(*) FROM runs_transcriptrecord") == 20


@pytest.mark.starts_first
def test_agents_keep_their_leases_when_the_database_restarts(
    stand: Stand, tmp_path: Path, database_server: PostgresServer
):
    stand.env["EVALHUB_LEASE_SECONDS"] = "6"
    stand.start_worker(threads=4)
    # They outlast their leases, which only heartbeats on a new connection renew.
    start_run(stand, tmp_path, trials=4, concurrency=4, command="sleep 14")
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'") == 4, 40)
    stand.forget_connection()
    time.sleep(1)
    database_server.stop()
    time.sleep(2)
    database_server.start()
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
    assert stand.rows("SELECT passed, errors FROM runs_run") == [(4, 0)]
    assert stand.rows("SELECT starts, count(*) FROM runs_trial GROUP BY starts") == [(1, 4)]
