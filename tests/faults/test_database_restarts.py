"""A database that goes away for a moment costs no agent's work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.services.servers import PostgresServer
from tests.worker.stand import Stand

SCENARIO = (
    "name: {name}\ndescription: Takes a while.\ntask:\n  prompt: sleep {seconds}\nevaluation:\n  gates: []\n"
)
TARGETS = """
targets:
  - name: shell
    provider: cli
    command_template: sh -c {PROMPT}
"""


def start_run(stand: Stand, folder: Path, *, trials: int, concurrency: int, seconds: int = 4) -> None:
    """Request a run whose agents take so many seconds each."""
    suite = folder / "slow"
    suite.mkdir()
    (suite / "one.yaml").write_text(SCENARIO.format(name="one", seconds=seconds))
    (folder / "targets.yaml").write_text(TARGETS)
    words = ["--targets", str(folder / "targets.yaml"), "--target", "shell", "--json"]
    words += ["--trials", str(trials), "--concurrency", str(concurrency)]
    stand.manage("run_scenarios", str(suite), *words)


@pytest.mark.starts_first
def test_no_trial_runs_again_when_the_database_restarts(
    stand: Stand, tmp_path: Path, database_server: PostgresServer
):
    stand.env["EVALHUB_LEASE_SECONDS"] = "20"
    stand.start_worker(threads=10)
    start_run(stand, tmp_path, trials=20, concurrency=10)
    for round_ in range(2):
        stand.until(
            lambda: (
                stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'") == 10
                and stand.one("SELECT count(*) FROM runs_trial WHERE state = 'finished'") == 10 * round_  # noqa: B023
            ),
            40,
        )
        stand.forget_connection()
        # Every agent ends while the server is away.
        time.sleep(2.5)
        database_server.stop()
        time.sleep(2.5)
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
    start_run(stand, tmp_path, trials=4, concurrency=4, seconds=14)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'") == 4, 40)
    stand.forget_connection()
    time.sleep(1)
    database_server.stop()
    time.sleep(2)
    database_server.start()
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
    assert stand.rows("SELECT passed, errors FROM runs_run") == [(4, 0)]
    assert stand.rows("SELECT starts, count(*) FROM runs_trial GROUP BY starts") == [(1, 4)]
