"""A full disk isn't a verdict where stored results and captured evidence are graded."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runs.db.disk import DiskFull, check_room_for_commands
from tests.faults.test_full_disk import small_disk, start_run
from tests.worker.stand import Stand

__all__ = ["small_disk"]

SCENARIO = """
name: gate
description: Its gate writes more than there is room for later.
task:
  prompt: echo done
evaluation:
  gates:
    - {type: command_succeeds, command: head -c 6000000 /dev/zero > large}
"""


@contextmanager
def little_room(disk: Path) -> Iterator[None]:
    """Leave 2 MB on the disk of 12 MB."""
    filler = disk / "filler"
    with filler.open("wb") as file:
        file.write(bytes(9_500_000))
    try:
        yield
    finally:
        filler.unlink()


def test_grading_again_takes_no_verdict_from_a_full_disk(small_disk: Path, stand: Stand, tmp_path: Path):
    stand.env |= {"EVALHUB_MIN_FREE_MB": "1", "EVALHUB_LEASE_SECONDS": "20"}
    stand.start_worker()
    start_run(stand, tmp_path, trials=1, scenario=SCENARIO)
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 60)
    assert stand.one("SELECT passed FROM runs_run") == 1
    with little_room(small_disk):
        again = stand.manage("grade_again", "1", "--json", code=None)
    assert again["error"].startswith("Disk full at "), again
    assert again["trials"] == []
    assert stand.manage("grade_again", "1", "--json")["trials"][0]["after"] == "pass"


def test_nothing_gets_a_verdict_where_no_more_files_fit(small_disk: Path, settings):
    settings.WORK_DIR = small_disk
    check_room_for_commands()
    subprocess.run(["mount", "-o", "remount,size=12m,nr_inodes=30", str(small_disk)], check=True)
    for number in range(20):
        (small_disk / str(number)).touch()
    with pytest.raises(DiskFull, match="inodes were free"):
        check_room_for_commands()


def test_captured_evidence_gets_no_verdict_from_a_full_disk(small_disk: Path, stand: Stand, tmp_path: Path):
    asked = tmp_path / "evidence.json"
    asked.write_text(json.dumps({"suite": {"name": "gate.yaml", "text": SCENARIO}, "evidence": {}}))
    with little_room(small_disk):
        graded = stand.manage("grade", str(asked), "--json", code=None)
    assert graded["id"] == "grade/disk", graded
    assert graded["detail"].startswith("Disk full at ")
    assert stand.manage("grade", str(asked), "--json")["outcome"] == "pass"
