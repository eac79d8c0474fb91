"""A tool author's CI, job by job: each has an empty database, and only artifacts go from one to the next."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands.ci_jobs import Ended, Job, run_words

DOOR = ("--fail-on-regression", "--archive-file", "results/runs.zip", "--output-dir", "results")
LOST = ("add-five", "add-four", "add-one", "add-two")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the main branch's job left: its archive."""
    folder = tmp_path_factory.mktemp("main")
    job = new_job(folder, "main")
    ended = job.run(*DOOR)
    assert ended.code == 0, ended.err
    assert "No baseline to compare with." in job.summary
    assert (job.junit.get("tests"), job.junit.get("failures"), job.junit.get("errors")) == ("18", "0", "0")
    kept = folder / "artifact.zip"
    shutil.copy(job.folder / "results" / "runs.zip", kept)
    return kept


def new_job(tmp_path: Path, name: str) -> Job:
    (tmp_path / name).mkdir()
    return Job(tmp_path / name)


def after(job: Job, artifact: Path, *words: str, **changes: str) -> Ended:
    return job.run(*DOOR, "--baseline", str(artifact), "--require-baseline", *words, **changes)


@pytest.mark.slow
def test_a_change_that_breaks_nothing_is_green(tmp_path: Path, artifact: Path) -> None:
    job = new_job(tmp_path, "change")
    ended = after(job, artifact)
    assert ended.code == 0, ended.err
    assert "Baseline: run 1, imported from `artifact.zip`." in job.summary
    assert "6 scenarios, 18 and 18 trials" in job.summary


def test_a_change_that_breaks_the_tool_is_red(tmp_path: Path, artifact: Path) -> None:
    job = new_job(tmp_path, "broken")
    ended = after(job, artifact, BROKEN="yes")
    assert ended.code == 3, ended.err
    assert job.summary.strip().startswith("### Regressed: `evals` v1 on `recorded`")
    assert all(f"- `{key}`: 3 of 3 → 0 of 3 trials passed" in job.summary for key in LOST)
    assert "results/transcripts/run-2/add-one.0.txt" in job.summary
    assert (job.junit.get("tests"), job.junit.get("failures"), job.junit.get("errors")) == ("18", "12", "0")


def test_a_key_that_is_not_set_is_red(tmp_path: Path, artifact: Path) -> None:
    job = new_job(tmp_path, "unset")
    ended = job.run(*DOOR, "--baseline", str(artifact), target="paid")
    assert ended.code == 4, ended.err
    assert (job.junit.get("errors"), job.junit.get("skipped"), job.junit.get("tests")) == ("18", "0", "18")
    assert all("API_KEY" in (each.get("message") or "") for each in job.junit.findall("testcase/error"))
    assert "API_KEY" in job.summary and "API_KEY" in ended.err


@pytest.mark.slow
def test_an_interrupted_job_leaves_what_it_has_and_is_no_baseline(tmp_path: Path, artifact: Path) -> None:
    job = new_job(tmp_path, "interrupted")
    agent = '#!/bin/sh\ncase "$1" in *six*) ./tool.sh add six;; *) sleep 60;; esac\n'
    (job.folder / "evals" / "fx" / "agent.sh").write_text(agent)
    words = run_words(
        *DOOR, "--baseline", str(artifact), "--only", "add-six", "--only", "add-three", trials=2
    )
    process = job.start(*words)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("1/4 "):
            break
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert (process.returncode, time.monotonic() - began < 20) == (143, True)
    assert "### Cancelled: `evals` v1 on `recorded`" in job.summary
    assert (job.junit.get("tests"), job.junit.get("skipped")) == ("4", "3")
    assert (job.folder / "results" / "runs.zip").exists()
    later = new_job(tmp_path, "later")
    ended = later.run(*DOOR, "--baseline", str(job.folder / "results" / "runs.zip"))
    assert ended.code == 2
    assert "its run was cancelled" in ended.err


@pytest.mark.slow
def test_a_matrix_of_shards_is_one_run(tmp_path: Path, artifact: Path) -> None:
    archives = []
    for shard in ("1/3", "2/3", "3/3"):
        job = new_job(tmp_path, f"shard-{shard[0]}")
        # Failed trials alone; the verdict is that of the whole.
        assert job.run("--shard", shard, "--archive-file", "shard.zip", BROKEN="yes").code == 1
        assert job.junit.get("tests") == "6"
        archives.append(str(job.folder / "shard.zip"))
    merge = new_job(tmp_path, "merge")
    assert merge.call("import_results", str(artifact)).code == 0
    words = ("import_results", *archives, "--merge", "--fail-on-regression", "--summary-file", "-")
    ended = merge.call(*words)
    assert ended.code == 3, ended.err
    assert "run 2: evals on recorded, 6/18 passed" in ended.out
    assert "**Regressed** against run 1" in merge.summary
    assert "6 scenarios, 18 and 18 trials" in merge.summary
    # Again it is the same run.
    assert merge.call(*words).code == 3
    documents: Any = json.loads(merge.call("show_run", "2", "--json").out)
    assert (documents["run"]["trials"], documents["run"]["baseline"]) == (18, 1)
