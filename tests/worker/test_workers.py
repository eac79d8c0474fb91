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


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("EVALHUB_LEASE_SECONDS", "soon", "EVALHUB_LEASE_SECONDS is 'soon'. Give it a whole number"),
        ("EVALHUB_ENV_ALLOW", "OPENAI_API_KEY", "EVALHUB_ENV_ALLOW: 'OPENAI_API_KEY' is not 'project:NAME'."),
        ("EVALHUB_WORKER_LABELS", "gpu,GPU!", "EVALHUB_WORKER_LABELS: 'GPU!' isn't a valid label. Write lower-case"),
        ("EVALHUB_EGRESS_ALLOW", "models", "EVALHUB_EGRESS_ALLOW: 'models' is not 'host:port'. Write a name"),
    ],
)  # fmt: skip
def test_a_worker_with_a_wrong_setting_ends_with_a_sentence(
    stand: Stand, name: str, value: str, sentence: str
):
    stand.env |= {name: value}
    assert stand.start_worker(threads=1, beat=False).wait(60) == 1
    log = (stand.folder / "worker.log").read_text()
    assert sentence in log
    assert "Traceback" not in log


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
