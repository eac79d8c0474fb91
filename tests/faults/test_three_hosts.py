"""Three workers that share the database, the broker and a bucket, and no disk; one is killed."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.object_store import KEYS, bucket
from tests.worker.stand import Stand, kill_group
from tests.worker.test_file_stores import web

SCENARIO = "name: {name}\ndescription: Takes a second.\ntask:\n  prompt: {prompt}\nevaluation:\n  gates: []\n"
TARGETS = """
targets:
  - name: anywhere
    provider: cli
    command_template: sh -c {PROMPT}
  - name: labelled
    provider: cli
    command_template: sh -c {PROMPT}
    labels: [gpu, macos]
"""
WRITES = "sleep 1; pwd > made.txt; echo done"
HOSTS = {"one": "gpu,macos", "two": "gpu", "three": ""}


@pytest.fixture
def store(stand: Stand) -> Iterator[None]:
    """Let everybody keep files in one bucket."""
    with bucket("hosts") as options:
        stand.env |= {**KEYS, "EVALHUB_STORE": f"s3://hosts/kept{options}", "EVALHUB_EGRESS": "full"}
        yield


def start_runs(stand: Stand, folder: Path) -> None:
    """Request 60 trials that may run anywhere and 12 that need the labels of one host."""
    suite = folder / "slow"
    suite.mkdir()
    for name in ("a", "b"):
        (suite / f"{name}.yaml").write_text(SCENARIO.format(name=name, prompt=json.dumps(WRITES)))
    (folder / "targets.yaml").write_text(TARGETS)
    words = [str(suite), "--targets", str(folder / "targets.yaml"), "--json"]
    stand.manage("run_scenarios", *words, "--target", "anywhere", "--trials", "30", "--concurrency", "20")
    stand.manage("run_scenarios", *words, "--target", "labelled", "--trials", "6", "--concurrency", "20")


def artifact(port: int, token: str, trial: int) -> bytes:
    """Return the kept output of a trial, as the web process sends it."""
    address = f"http://127.0.0.1:{port}/api/v1/trials/{trial}/artifacts/transcript"
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}", "Host": "localhost"})
    with urllib.request.urlopen(asked, timeout=20) as answer:
        content: bytes = answer.read()
    return content


@pytest.mark.starts_first
def test_every_trial_ends_once_on_a_worker_with_its_labels(stand: Stand, store: None, tmp_path: Path):
    workers = {
        name: stand.start_worker(
            threads=4,
            beat=name == "three",
            EVALHUB_WORKER_LABELS=labels,
            EVALHUB_DATA=str(tmp_path / "hosts" / name),
        )
        for name, labels in HOSTS.items()
    }
    names = {name: f"{socket.gethostname()}:{process.pid}" for name, process in workers.items()}
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_worker WHERE store <> ''") == 3, 60)
    assert stand.one("SELECT count(DISTINCT store) FROM runs_worker") == 1
    start_runs(stand, tmp_path)
    of_two = f"SELECT count(*) FROM runs_trial WHERE worker = '{names['two']}' AND state = "
    stand.until(lambda: stand.one(f"{of_two} 'finished'") >= 4 and stand.one(f"{of_two} 'running'") > 0, 60)
    kill_group(workers["two"])
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_run WHERE state = 'finished'") == 2, 120)
    counts = "SELECT passed, failed, errors, cancelled, open FROM runs_run ORDER BY id"
    assert stand.rows(counts) == [(60, 0, 0, 0, 0), (12, 0, 0, 0, 0)]
    for table in ("transcriptrecord", "artifact"):
        once = f"SELECT count(DISTINCT trial_id) FROM runs_{table}"
        assert stand.one(once) == 72
    assert stand.one("SELECT count(*) FROM runs_transcriptrecord") == 72
    assert stand.one("SELECT max(starts) FROM runs_trial") > 1, "the killed worker held trials"
    carried = dict.fromkeys(names.values(), 0) | dict(
        stand.rows("SELECT worker, count(*) FROM runs_trial WHERE run_id = 1 GROUP BY worker")
    )
    assert all(carried.values()), carried
    assert stand.rows("SELECT DISTINCT worker FROM runs_trial WHERE run_id = 2") == [(names["one"],)]
    with_own_folders(tmp_path / "hosts")
    read_by_web(stand, tmp_path)


def with_own_folders(hosts: Path) -> None:
    """Check that each worker has worked in its own data directory and kept nothing there."""
    for name in HOSTS:
        assert (hosts / name / "work").is_dir()
        kept = hosts / name / "artifacts"
        assert not kept.exists() or not any(path.is_file() for path in kept.rglob("*"))


def read_by_web(stand: Stand, folder: Path) -> None:
    """Check that a web process with a data directory of its own sends what every trial has kept."""
    stand.manage("create_user", "ada", "--role", "author", given="sturdy-lantern-42\n")
    words = ["ci", "--user", "ada", "--role", "author", "--json"]
    token = stand.manage("create_token", *words)["token"]
    env = {**stand.env, "EVALHUB_DATA": str(folder / "hosts" / "web")}
    with web(env, folder / "web.log") as port:
        stand.until(lambda: "Booting worker" in (folder / "web.log").read_text(), 90)
        for (trial,) in stand.rows("SELECT id FROM runs_trial"):
            assert artifact(port, token, trial) == b"done\n"
