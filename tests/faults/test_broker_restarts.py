"""A broker that is killed again and again ends no worker, and no trial is lost."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from tests.worker.stand import Stand, kill_group
from tests.worker.test_nothing_is_lost import files


@pytest.mark.starts_first
def test_workers_outlive_a_broker_that_is_killed_under_load(stand: Stand, tmp_path: Path):
    arguments = files(tmp_path, "one", "two", delay_ms=100)
    workers = [stand.start_worker(threads=4, beat=n == 0) for n in range(3)]
    models = [word for n in range(20) for word in ("--model", f"m{n}")]
    stand.manage("run_scenarios", *arguments, *models, "--trials", "10")
    for n in range(6):
        enough = f"SELECT count(*) > {20 * n} FROM runs_trial WHERE state = 'finished'"
        stand.until(partial(stand.one, enough), 90)
        assert stand.broker is not None
        kill_group(stand.broker)
        time.sleep(0.1 + 0.3 * n)
        stand.socket.unlink(missing_ok=True)
        stand.start_broker()
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_run WHERE state = 'finished'") == 20, 90)
    assert stand.rows("SELECT sum(passed), sum(errors), sum(open) FROM runs_run") == [(400, 0, 0)]
    assert [worker.poll() for worker in workers] == [None, None, None]
