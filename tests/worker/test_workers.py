"""What a worker does beside its trials."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.worker.stand import ROOT, Stand

PRELOADED = """
import pathlib, sys
modules = pathlib.Path(__file__).with_name("modules")
modules.with_suffix(".new").write_text(" ".join(sys.modules))
modules.with_suffix(".new").rename(modules)
"""


def test_a_worker_preloads_modules_and_imports_no_pages(stand: Stand, tmp_path: Path):
    (tmp_path / "evalhub_preloaded.py").write_text(PRELOADED)
    stand.env |= {"EVALHUB_PRELOAD": "evalhub_preloaded", "PYTHONPATH": str(tmp_path)}
    stand.start_worker(threads=1)
    stand.until((tmp_path / "modules").exists, 90)
    imported = (tmp_path / "modules").read_text().split()
    assert "runs.tasks" in imported
    assert "evalhub.urls" not in imported


AT_WORK = """
name: works
description: Reports a call and goes on.
task:
  prompt: >-
    echo '{"type":"tool_call","command":"taskmgr list"}' >> "$EVENTS"; sleep 60
evaluation:
  gates: []
"""
TARGETS = """
targets:
  - name: shell
    provider: cli
    command_template: EVENTS={EVENTS_FILE} sh -c {PROMPT}
"""


def test_a_running_trial_shows_worker_and_last_call(stand: Stand, tmp_path: Path):
    suite, targets = tmp_path / "suite", tmp_path / "targets.yaml"
    suite.mkdir()
    (suite / "works.yaml").write_text(AT_WORK)
    targets.write_text(TARGETS)
    stand.start_worker(threads=1)
    stand.manage("run_scenarios", str(suite), "--targets", str(targets), "--target", "shell", "--json")
    stand.until(lambda: bool(stand.rows("SELECT id FROM runs_trial WHERE activity <> ''")), 90)
    assert stand.rows("SELECT worker, activity FROM runs_trial") == [
        (stand.one("SELECT name FROM runs_worker"), "taskmgr list")
    ]
    stand.rows("UPDATE runs_run SET cancel_requested = TRUE RETURNING id")
    stand.until(lambda: stand.one("SELECT state FROM runs_trial") == "cancelled", 90)
    assert stand.one("SELECT activity FROM runs_trial") == ""


SHUTDOWN = """
from evalhub.celery import app
app.control.broadcast("shutdown")
app.send_task("runs.tasks.tick")
"""
PICKLE = """
from evalhub.celery import app
app.send_task("runs.tasks.tick", serializer="pickle")
"""


@pytest.mark.slow
def test_a_worker_obeys_no_message_that_stops_it_or_makes_it_unpickle(stand: Stand):
    worker = stand.start_worker(beat=False)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_worker") == 1, 90)
    for attack in (SHUTDOWN, PICKLE):
        subprocess.run([sys.executable, "-c", attack], cwd=ROOT, env=stand.env, check=True, timeout=30)
    log = stand.folder / "worker.log"
    stand.until(lambda: "ContentDisallowed" in log.read_text(), 90)
    time.sleep(2)
    assert worker.poll() is None


@pytest.mark.slow
def test_the_health_of_a_worker_is_known_by_the_database(stand: Stand):
    assert "No worker on " in stand.manage("worker_health", "--json", code=2)["detail"]
    stand.start_worker(threads=1, beat=False)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_worker") == 1, 90)
    stand.manage("worker_health")
