"""A baseline that is a file acts as a stored one does: its trials give a verdict, or the job is refused at the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.ci_jobs import FILES, Job

LOST = ("add-five", "add-four", "add-one", "add-two")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def baseline_of(job: Job, **changes: Any) -> str:
    """Write the baseline with changes into the job's folder, and return its name."""
    value = json.loads((FILES / "baseline.json").read_text())
    (job.folder / "before.json").write_text(json.dumps({**value, **changes}))
    return "before.json"


@pytest.mark.slow
def test_a_broken_tool_regresses_against_a_file(job: Job) -> None:
    ended = job.run("--baseline", str(FILES / "baseline.json"), "--fail-on-regression", BROKEN="yes")
    assert ended.code == 3, ended.err
    assert job.summary.strip().startswith("### Regressed: `evals` v1 on `recorded`")
    assert "6 scenarios, 18 and 18 trials" in job.summary
    assert "Baseline: run 1, imported from `baseline.json`." in job.summary
    assert all(f"- `{key}`: 3 of 3 → 0 of 3 trials passed" in job.summary for key in LOST)
    assert "No baseline" not in job.summary + ended.out


@pytest.mark.slow
def test_the_same_tool_does_not_regress_against_it(job: Job) -> None:
    ended = job.run("--baseline", str(FILES / "baseline.json"), "--fail-on-regression", "--require-baseline")
    assert ended.code == 0, ended.err
    assert "Pass rate ±0 points" in job.summary


@pytest.mark.slow
def test_of_other_contents_it_says_that_ids_are_compared(job: Job) -> None:
    metadata = {"toolVersion": None, "evalFileHash": "0" * 12}
    ended = job.run("--baseline", baseline_of(job, metadata=metadata), "--fail-on-regression", BROKEN="yes")
    assert ended.code == 3
    assert "compared by their ids" in job.summary


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("cases", "sentence"),
    [
        ([{"id": "other", "passed": True}], "none of the scenarios of evals"),
        (
            [
                {"id": "add-one", "passed": False, "error": "agent error: HTTP 500"},
                {"id": "add-two", "passed": True},
            ],
            "1 of its 2 trials hit errors",
        ),
        ([], "no case in `cases` has an `id`"),
    ],
)
def test_a_file_that_gives_no_verdict_is_refused_before_the_run(
    job: Job, cases: list[Any], sentence: str
) -> None:
    ended = job.run("--baseline", baseline_of(job, cases=cases), "--fail-on-regression", BROKEN="yes")
    assert ended.code == 2
    assert sentence in ended.err
    assert not (job.folder / "junit.xml").exists()
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_a_scenario_that_changed_since_is_not_compared(job: Job) -> None:
    """The hashes of scenarios that evalhub writes into its results."""
    assert job.run("--output-dir", "out").code == 0
    (written,) = (job.folder / "out").iterdir()
    (job.folder / "other").mkdir()
    later = Job(job.folder / "other")
    scenario = later.folder / "evals" / "one.yaml"
    scenario.write_text(scenario.read_text().replace("Add a note", "Write a note"))
    ended = later.run("--baseline", str(written), "--fail-on-regression", BROKEN="yes")
    assert ended.code == 3
    assert "1 scenario not comparable: task and gates changed (`add-one`)" in later.summary
    assert "5 scenarios, 15 and 15 trials" in later.summary
