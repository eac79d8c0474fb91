"""What follows the close of a run is done although the worker that closed it was killed at once."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.faults.test_database_restarts import start_run
from tests.worker.stand import Stand, kill_group

HELD = 7_001
"""Key of the advisory lock on which the comparison of the second run waits."""
HOLD = f"""
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock({HELD}); RETURN NEW; END $$;
CREATE TRIGGER hold BEFORE UPDATE ON runs_run FOR EACH ROW
WHEN (OLD.id = 2 AND OLD.state = 'finished') EXECUTE FUNCTION hold();
"""


@pytest.mark.starts_first
def test_siblings_are_compared_and_the_result_is_written(stand: Stand, tmp_path: Path):
    out = tmp_path / "out"
    stand.env["EVALHUB_OUTPUT_DIR"] = str(out)
    worker = stand.start_worker(threads=4)
    start_run(stand, tmp_path, trials=10, concurrency=1)
    words = ["--targets", str(tmp_path / "targets.yaml"), "--target", "shell", "--baseline", "1", "--json"]
    stand.manage("run_scenarios", str(tmp_path / "slow"), *words)
    second = "SELECT followed_up FROM runs_run WHERE id = 2 AND state = 'finished'"
    stand.until(lambda: stand.rows(second) == [(True,)], 60)
    assert stand.one("SELECT state FROM runs_run WHERE id = 1") == "running"
    with psycopg.connect(stand.database, autocommit=True) as held:
        held.execute(HOLD)
        held.execute("SELECT pg_advisory_lock(%s)", [HELD])
        stand.until(
            lambda: bool(stand.rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")), 60
        )
        kill_group(worker)
        assert stand.rows("SELECT state, followed_up FROM runs_run WHERE id = 1") == [("finished", False)]
    stand.start_worker(threads=2)
    stand.until(lambda: stand.one("SELECT followed_up FROM runs_run WHERE id = 1"), 60)
    assert stand.one("SELECT verdict FROM runs_run WHERE id = 2")
    assert sorted(path.name.rsplit(".", 2)[1] for path in out.iterdir()) == ["run-1", "run-2"]
