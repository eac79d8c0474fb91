"""An interrupted job leaves what it has: results of the finished trials, marked cancelled, within 5 seconds."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.commands.ci_jobs import Job, run_words

LIMIT_SECONDS = 5.0
SLOW_AGENT = """#!/bin/sh
trap "" TERM INT
case "$1" in *one*) ./tool.sh add one;; *) touch "$STARTED"; sleep 60;; esac
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    job = Job(tmp_path)
    (job.folder / "evals" / "fx" / "agent.sh").write_text(SLOW_AGENT)
    targets = "targets:\n  - {name: recorded, provider: cli, command_template: 'sh ./agent.sh {PROMPT}', env: {STARTED: '${{ STARTED }}'}}\n"
    (job.folder / "evals" / "targets.yaml").write_text(targets)
    return job


def interrupted(job: Job, number: signal.Signals, *, again: signal.Signals | None = None) -> tuple[int, str]:
    """Interrupt a job whose first trial is finished and whose second one hangs; return its exit code and errors."""
    # The sandbox shows an agent no file of the job's but those below its workspace, so stderr says how far the job is.
    words = run_words("--only", "add-one", "--only", "add-two", "--output-dir", "out", trials=2)
    process = job.start(*words, STARTED="started", EVALHUB_SANDBOX="prefer")
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("1/4 "):
            break
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(number)
    if again is not None:
        time.sleep(0.5)
        process.send_signal(again)
    until_written(job, began)
    _, err = process.communicate(timeout=60)
    return process.returncode, "".join(lines) + err


def until_written(job: Job, began: float) -> None:
    names = ("step.md", "junit.xml")
    while not all((job.folder / name).exists() for name in names):
        assert time.monotonic() - began < LIMIT_SECONDS, "nothing was written"
        time.sleep(0.05)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("number", "again", "code"),
    [(signal.SIGINT, None, 130), (signal.SIGTERM, None, 143), (signal.SIGINT, signal.SIGTERM, 130)],
    ids=["SIGINT", "SIGTERM", "both"],
)
def test_it_leaves_the_finished_trials(
    job: Job, number: signal.Signals, again: signal.Signals | None, code: int
) -> None:
    assert interrupted(job, number, again=again)[0] == code
    assert "### Cancelled: `evals` v1 on `recorded`" in job.summary
    assert "⚠ The run was cancelled: 1 of 4 trials finished." in job.summary
    assert (job.junit.get("tests"), job.junit.get("skipped"), job.junit.get("failures")) == ("4", "3", "0")
    properties = {each.get("name"): each.get("value") for each in job.junit.findall("properties/property")}
    assert properties["evalhub.state"] == "cancelled"
    (written,) = (job.folder / "out").iterdir()
    result = json.loads(written.read_text())
    assert ([case["id"] for case in result["cases"]], result["evalhub"]["state"]) == (
        ["add-one"],
        "cancelled",
    )
