"""A file store that is away stops the work and costs no trial; when it answers again the work goes on."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from evalhub.web.example_agent import free_port
from tests.faults.test_full_disk import start_run
from tests.services.object_store import KEYS, bucket
from tests.worker.stand import Stand

SCENARIO = """
name: writes
description: Leaves a file behind.
task:
  prompt: sleep 2; echo hi > made
evaluation:
  gates:
    - {type: file_exists, path: made}
"""
AWAY = "The file store can't be reached: "
RUNNING = "SELECT count(*) FROM runs_trial WHERE state = 'running'"


@pytest.mark.starts_first
def test_a_store_that_is_away_costs_no_trial(stand: Stand, tmp_path: Path):
    port = free_port()
    # Only the store may take trials back, not a lease that ends on a busy machine.
    stand.env |= {**KEYS, "EVALHUB_EGRESS": "full", "EVALHUB_LEASE_SECONDS": "20"}
    with ExitStack() as serving:
        options = serving.enter_context(bucket("hosts", port))
        stand.env["EVALHUB_STORE"] = f"s3://hosts/kept{options}"
        stand.start_worker()
        stand.until(lambda: bool(stand.rows("SELECT 1 FROM runs_worker WHERE store <> ''")), 90)
        start_run(stand, tmp_path, trials=12, scenario=SCENARIO)
        stand.until(lambda: stand.one("SELECT passed FROM runs_run") > 0, 90)
        stand.until(lambda: stand.one(RUNNING) == 4, 90)
    stand.until(lambda: stand.one("SELECT sum(put_back) FROM runs_trial") > 0, 90)
    stand.until(lambda: stand.one(RUNNING) == 0, 90)
    stand.until(lambda: AWAY in stand.one("SELECT problem FROM runs_worker"), 90)
    assert stand.one("SELECT store FROM runs_worker") != "", "a known id is kept"
    assert 0 < stand.one("SELECT passed FROM runs_run") < 12

    with bucket("hosts", port):
        stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
        stand.until(lambda: stand.one("SELECT problem FROM runs_worker") == "", 90)
    assert stand.rows("SELECT passed, failed, errors, open FROM runs_run") == [(12, 0, 0, 0)]
    assert stand.one("SELECT max(starts) FROM runs_trial") == 1


@pytest.mark.starts_first
def test_a_worker_that_starts_without_its_store_starts_no_trial(stand: Stand, tmp_path: Path):
    port = free_port()
    options = f"?endpoint=http://127.0.0.1:{port}&region=us-east-1"
    stand.env |= {**KEYS, "EVALHUB_EGRESS": "full", "EVALHUB_STORE": f"s3://hosts/kept{options}"}
    stand.start_worker()
    stand.until(lambda: bool(stand.rows("SELECT 1 FROM runs_worker WHERE problem <> ''")), 90)
    start_run(stand, tmp_path, trials=2, scenario=SCENARIO)
    with bucket("hosts", port):
        stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
    assert stand.rows("SELECT passed, errors FROM runs_run") == [(2, 0)]
    assert stand.one("SELECT sum(put_back) FROM runs_trial") == 0
