"""Without its broker, evalhub prepares, runs, requeues and answers requests by polling."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from evalhub.web.example_agent import free_port
from tests.faults.test_database_restarts import start_run
from tests.services.servers import redis_program, start_redis
from tests.worker.stand import Stand, kill_group

REQUESTED = """
WITH checks AS (
  INSERT INTO runs_targetcheck (target_id, asked, worker, sentence, version)
  SELECT id, now(), '', '', '' FROM runs_target RETURNING id
)
INSERT INTO runs_job (kind, subject, labels, due, attempts, worker, token, lease_until)
SELECT 'check', id, '[]', 0, 0, '', '', 0 FROM checks
"""


@pytest.fixture
def broker(stand: Stand) -> subprocess.Popen[bytes]:
    """Give a broker that is reached over TCP, as by workers on other hosts."""
    port, folder = free_port(), stand.folder / "redis"
    folder.mkdir()
    stand.env["EVALHUB_BROKER_URL"] = f"redis://127.0.0.1:{port}/0"
    started = start_redis(folder, redis_program(), folder / "redis.sock", port=port)
    stand.processes.append(started)
    return started


@pytest.mark.starts_first
@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_work_goes_on_while_the_broker_is(
    stand: Stand, tmp_path: Path, broker: subprocess.Popen[bytes], fault: str
):
    stand.env["EVALHUB_LEASE_SECONDS"] = "6"
    first = stand.start_worker(threads=2)
    stand.start_worker(threads=2, beat=False)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_worker") == 2, 60)
    os.kill(broker.pid, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)
    start_run(stand, tmp_path, trials=4, concurrency=4, command="sleep 3")
    if fault == "killed":
        stand.until(lambda: stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'") == 4, 60)
        kill_group(first)
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
    assert stand.rows("SELECT passed, errors, open FROM runs_run") == [(4, 0, 0)]
    lost = 2 if fault == "killed" else 0
    assert stand.one("SELECT count(*) FROM runs_trial WHERE starts = 2") == lost
    before = stand.one("SELECT count(*) FROM runs_targetcheck")
    stand.execute(REQUESTED)
    answered = "SELECT count(*) FROM runs_targetcheck WHERE at IS NOT NULL"
    stand.until(lambda: stand.one(answered) == before + 1, 30)
    log = (tmp_path / "worker.log").read_text()
    assert "Work is found by polling until it does." in log
    if fault == "frozen":
        os.kill(broker.pid, signal.SIGCONT)
        stand.until(lambda: "The broker answers again." in (tmp_path / "worker.log").read_text(), 30)
