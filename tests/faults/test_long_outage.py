"""A database that is away for longer than a lease costs no finished result, whether the worker waits or starts again."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.test_database_restarts import SCENARIO, TARGETS, start_run
from tests.services.servers import PostgresServer
from tests.worker.stand import ROOT, Stand

LEASE_SECONDS = 6
AWAY_SECONDS = 15.0
"""Longer than a lease, and than the time after which nobody has checked leases."""


def run_under_way(stand: Stand, folder: Path, *, trials: int) -> None:
    """Start a worker and a run whose trials all run at once."""
    stand.env["EVALHUB_LEASE_SECONDS"] = str(LEASE_SECONDS)
    stand.start_worker(threads=trials)
    start_run(stand, folder, trials=trials, concurrency=trials)
    running = "SELECT count(*) FROM runs_trial WHERE state = 'running'"
    stand.until(lambda: stand.one(running) == trials, 40)
    stand.forget_connection()
    # Their agents have begun.
    time.sleep(2)


def kept_results(stand: Stand) -> list[Path]:
    return list((stand.data / "unrecorded").glob("*.json"))


@pytest.mark.starts_first
def test_results_wait_for_a_database_that_is_away_for_longer_than_a_lease(
    stand: Stand, tmp_path: Path, database_server: PostgresServer
):
    run_under_way(stand, tmp_path, trials=6)
    database_server.stop()
    stand.until(lambda: len(kept_results(stand)) == 6, 20)
    time.sleep(AWAY_SECONDS)
    database_server.start()
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 60)
    assert stand.rows("SELECT passed, errors, open FROM runs_run") == [(6, 0, 0)]
    assert stand.rows("SELECT starts, count(*) FROM runs_trial GROUP BY starts") == [(1, 6)]
    stand.until(lambda: kept_results(stand) == [], 10)
    log = (tmp_path / "worker.log").read_text()
    assert "Traceback" not in log, log
    about_it = [line for line in log.splitlines() if "The database is away" in line]
    assert 1 <= len(about_it) <= 2, about_it
    named = {int(number) for number in re.findall(r"trial (\d+): its result is kept in ", log)}
    assert named == {number for (number,) in stand.rows("SELECT id FROM runs_trial")}


@pytest.mark.starts_first
def test_a_worker_that_starts_again_records_what_it_kept(
    stand: Stand, tmp_path: Path, database_server: PostgresServer
):
    run_under_way(stand, tmp_path, trials=3)
    database_server.stop()
    stand.until(lambda: len(kept_results(stand)) == 3, 20)
    worker = stand.processes[-1]
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert len(kept_results(stand)) == 3
    time.sleep(AWAY_SECONDS - LEASE_SECONDS)
    database_server.start()
    stand.start_worker(threads=3)
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 60)
    assert stand.rows("SELECT passed, errors, open FROM runs_run") == [(3, 0, 0)]
    assert stand.rows("SELECT starts, count(*) FROM runs_trial GROUP BY starts") == [(1, 3)]
    stand.until(lambda: kept_results(stand) == [], 10)


@pytest.mark.starts_first
def test_a_command_waits_with_its_results(stand: Stand, tmp_path: Path, database_server: PostgresServer):
    stand.env["EVALHUB_LEASE_SECONDS"] = str(LEASE_SECONDS)
    suite = tmp_path / "slow"
    suite.mkdir()
    (suite / "one.yaml").write_text(SCENARIO.format(name="one", command="sleep 4"))
    (tmp_path / "targets.yaml").write_text(TARGETS)
    words = ["--targets", str(tmp_path / "targets.yaml"), "--target", "shell", "--trials", "3"]
    command = subprocess.Popen(
        [sys.executable, "manage.py", "run_scenarios", str(suite), *words, "--concurrency", "3", "--now"],
        cwd=ROOT,
        env=stand.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    stand.processes.append(command)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'") == 3, 60)
    stand.forget_connection()
    time.sleep(1)
    database_server.stop()
    time.sleep(AWAY_SECONDS)
    assert command.poll() is None
    database_server.start()
    output, _ = command.communicate(timeout=60)
    assert command.returncode == 0, output
    assert stand.rows("SELECT passed, errors, open FROM runs_run") == [(3, 0, 0)]
    assert stand.one("SELECT max(starts) FROM runs_trial") == 1
    stand.until(lambda: kept_results(stand) == [], 10)
    assert b"Traceback" not in output
