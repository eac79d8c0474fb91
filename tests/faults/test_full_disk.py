"""A full disk stops the work and costs no trial; with room again the work goes on."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import missing
from tests.worker.stand import Stand

SCENARIO = """
name: large
description: Leaves a file behind.
task:
  prompt: sleep 0.2; head -c 1500000 /dev/urandom > large
evaluation:
  gates:
    - {type: file_exists, path: large}
"""
GATE_WRITES = """
name: gate
description: Its gate writes more than there is room for.
task:
  prompt: echo done
evaluation:
  gates:
    - {type: command_succeeds, command: head -c 14000000 /dev/zero > large}
"""
HEALTH_CHECK_WRITES = """
name: check
description: The check of its tool writes more than there is room for.
target: {binary: sh, health_check: head -c 14000000 /dev/zero > large}
task:
  prompt: echo done
evaluation:
  gates: []
"""
TARGETS = """
targets:
  - name: shell
    provider: cli
    command_template: sh -c {PROMPT}
"""


def mount(place: Path, *options: str) -> None:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(place)],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def small_disk(stand: Stand, tmp_path: Path) -> Iterator[Path]:
    """Put the data directory on a file system of 12 MB."""
    if os.geteuid() != 0:
        missing("root", "Only root mounts a small file system.")
    place = tmp_path / "small"
    place.mkdir()
    try:
        mount(place, "size=12m")
    except subprocess.CalledProcessError as error:
        missing("root", f"A small file system cannot be mounted here: {error.stderr.decode().strip()}.")
    stand.env["EVALHUB_DATA"] = str(place)
    yield place
    stand.stop()
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def start_run(stand: Stand, folder: Path, trials: int, scenario: str = SCENARIO) -> None:
    suite = folder / "large"
    suite.mkdir()
    (suite / "large.yaml").write_text(scenario)
    (folder / "targets.yaml").write_text(TARGETS)
    words = ["--targets", str(folder / "targets.yaml"), "--target", "shell", "--json"]
    stand.manage("run_scenarios", str(suite), *words, "--trials", str(trials), "--concurrency", "4")


def test_a_full_disk_costs_no_trial(small_disk: Path, stand: Stand, tmp_path: Path):
    stand.env["EVALHUB_MIN_FREE_MB"] = "1"
    # Only a full disk may take trials back, not a lease that ends on a busy machine.
    stand.env["EVALHUB_LEASE_SECONDS"] = "20"
    stand.start_worker()
    start_run(stand, tmp_path, trials=20)
    stand.until(lambda: stand.one("SELECT sum(put_back) FROM runs_trial") > 0, 90)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'") == 0, 90)
    stand.until(lambda: "Disk full at " in stand.one("SELECT problem FROM runs_worker"), 90)
    kept = stand.one("SELECT count(*) FROM runs_artifact WHERE name = 'workspace'")
    done = stand.one("SELECT passed FROM runs_run")
    assert 0 < done == kept < 20
    files = [path for path in (small_disk / "artifacts").glob("*/*") if path.is_file()]
    assert all(len(path.name) == 64 for path in files), "no partial file is left"
    assert not list((small_disk / "work").glob("*/trial-*"))

    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 60)
    assert stand.rows("SELECT passed, failed, errors, open FROM runs_run") == [(20, 0, 0, 0)]
    assert stand.one("SELECT max(starts) FROM runs_trial") == 1
    stand.until(lambda: stand.one("SELECT problem FROM runs_worker") == "", 90)


@pytest.mark.parametrize("where", [GATE_WRITES, HEALTH_CHECK_WRITES], ids=["gate", "health check"])
def test_a_full_disk_is_no_verdict_of_a_command(small_disk: Path, stand: Stand, tmp_path: Path, where: str):
    stand.env |= {"EVALHUB_MIN_FREE_MB": "1", "EVALHUB_LEASE_SECONDS": "20"}
    stand.start_worker()
    start_run(stand, tmp_path, trials=1, scenario=where)
    table = "trial" if where is GATE_WRITES else "run"
    stand.until(lambda: stand.one(f"SELECT sum(put_back) FROM runs_{table}") > 0, 60)
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 60)
    assert stand.rows("SELECT passed, failed, errors FROM runs_run") == [(1, 0, 0)]


def test_a_full_disk_that_holds_the_database_loses_no_result(small_disk: Path, stand: Stand, tmp_path: Path):
    stand.env |= {"DATABASE_URL": f"sqlite:///{small_disk / 'evalhub.sqlite3'}", "EVALHUB_MIN_FREE_MB": "0"}
    stand.manage("migrate", "-v0")
    stand.start_worker()
    start_run(stand, tmp_path, trials=12)

    def run() -> dict[str, object]:
        found = stand.manage("show_run", "1", "--json", code=None)["run"]
        return {name: found[name] for name in ("state", "passed", "failed", "errors")}

    stand.until(lambda: "Disk full at " in (tmp_path / "worker.log").read_text(), 90)
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    stand.until(lambda: run()["state"] == "finished", 60)
    assert run() == {"state": "finished", "passed": 12, "failed": 0, "errors": 0}, json.dumps(run())
