"""PgBouncer in transaction mode: consecutive transactions may reach different sessions of the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.requirements import missing
from tests.services.servers import NotHere, PostgresServer, pgbouncer
from tests.worker.stand import Stand
from tests.worker.test_nothing_is_lost import files

CONNECTIONS = 3
"""Fewer than the processes' threads, so that sessions change hands."""


@pytest.fixture
def pooled(stand: Stand, database_server: PostgresServer) -> Iterator[Stand]:
    """Give an evalhub that reaches its database through a pool of few connections."""
    try:
        with pgbouncer(database_server, pool_mode="transaction", pool_size=CONNECTIONS) as folder:
            # Only a pool that breaks sessions may take trials back, not a busy machine.
            stand.env["EVALHUB_LEASE_SECONDS"] = "20"
            name = urlsplit(stand.database).path
            stand.env["DATABASE_URL"] = (
                f"postgresql://evalhub@{name}?host={folder}&port=6432&pool_mode=transaction"
            )
            yield stand
            stand.stop()
    except NotHere as error:
        missing("pgbouncer", str(error))


@pytest.mark.starts_first
def test_everything_works_through_a_pool_of_transactions(pooled: Stand, tmp_path: Path):
    arguments = files(tmp_path, "one", "two", delay_ms=20)
    for beat in (True, False):
        pooled.start_worker(threads=6, beat=beat)
    pooled.manage("run_scenarios", *arguments, "--trials", "20", "--concurrency", "12")
    pooled.until(lambda: pooled.one("SELECT state FROM runs_run") == "finished", 90)
    assert pooled.rows("SELECT passed, errors, open FROM runs_run") == [(40, 0, 0)]
    assert pooled.one("SELECT max(starts) FROM runs_trial") == 1
    # Commands that read many rows.
    for words in (["prune", "--dry-run"], ["migrate", "runs", "zero", "--plan"]):
        pooled.manage(*words)
    log = (tmp_path / "worker.log").read_text()
    for sign in ("Traceback", "prepared statement", "cursor", "The database is away"):
        assert sign not in log, log
    sessions = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{urlsplit(pooled.database).path[1:]}'"
    with psycopg.connect(pooled.database) as direct:
        # The pool's, this one, and the one that the test asks with.
        assert direct.execute(sessions).fetchone()[0] <= CONNECTIONS + 2  # type: ignore[index]
