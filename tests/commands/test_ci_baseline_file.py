"""A baseline that is a file acts as a stored one does: its trials give a verdict, or the job is refused at the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.models import Run
from tests.commands.calling import call
from tests.commands.ci_jobs import FILES, Job, check_out, run_words


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cases": [{"id": "other", "passed": True}]}, "none of the scenarios of evals"),
        ({"cases": [{"id": "add-one", "passed": False, "error": "agent error: HTTP 500"}, {"id": "add-two", "passed": True}]}, "1 of its 2 trials hit errors"),
        ({"cases": []}, "no case in `cases` has an `id`"),
        ({"evalhub": {"state": "cancelled"}}, "its run was cancelled"),
    ],
)  # fmt: skip
def test_a_file_that_gives_no_verdict_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], sentence: str
) -> None:
    check_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    value = json.loads((FILES / "baseline.json").read_text())
    (tmp_path / "before.json").write_text(json.dumps({**value, **changes}))
    ended = call(*run_words("--baseline", "before.json", "--fail-on-regression"))
    assert ended.code == 2
    assert sentence in ended.err
    assert not Run.objects.exists()
    assert not (tmp_path / "junit.xml").exists()


@pytest.mark.slow
def test_a_scenario_that_changed_since_is_not_compared(tmp_path: Path) -> None:
    """The hashes of scenarios that evalhub writes into its results."""
    job = Job(tmp_path)
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
