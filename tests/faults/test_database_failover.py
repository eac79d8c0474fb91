"""PostgreSQL with a standby: the primary crashes, the standby is promoted, and running trials are recorded there."""

from __future__ import annotations

import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.test_database_restarts import start_run
from tests.requirements import missing
from tests.services.servers import NotHere, PostgresServer, postgres_server
from tests.worker.stand import Stand


@pytest.fixture
def servers() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Give a primary and its standby, which has every commit before a client hears of it."""
    try:
        with postgres_server() as primary, postgres_server(primary=primary) as standby:
            primary.wait_for_standby()
            yield primary, standby
    except NotHere as error:
        missing("postgres", str(error))


@pytest.fixture
def stand(tmp_path: Path, servers: tuple[PostgresServer, PostgresServer]) -> Iterator[Stand]:
    """Give an evalhub that knows both servers."""
    hosts = ",".join(str(server.folder) for server in servers)
    server = f"postgresql://evalhub@/postgres?host={hosts}&target_session_attrs=read-write&connect_timeout=3"
    made = Stand(tmp_path, f"failover_{uuid.uuid4().hex[:12]}", server=server)
    try:
        made.manage("migrate", "-v0")
        made.start_broker()
        yield made
    finally:
        made.stop()


@pytest.mark.starts_first
def test_no_trial_runs_again_when_a_standby_is_promoted(
    stand: Stand, servers: tuple[PostgresServer, PostgresServer], tmp_path: Path
):
    primary, standby = servers
    stand.env["EVALHUB_LEASE_SECONDS"] = "20"
    worker = stand.start_worker(threads=6)
    start_run(stand, tmp_path, trials=9, concurrency=6)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'") == 6, 90)
    stand.forget_connection()
    time.sleep(2)
    primary.stop(signal.SIGQUIT)
    # Every agent ends before there is a primary again.
    time.sleep(4)
    standby.promote()
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
    assert stand.rows("SELECT passed, errors, open FROM runs_run") == [(9, 0, 0)]
    assert stand.rows("SELECT starts, count(*) FROM runs_trial GROUP BY starts") == [(1, 9)]
    assert worker.poll() is None
