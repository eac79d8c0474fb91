"""What a job of GitHub Actions gets: step outputs, annotations, JUnit with files, and transcripts in the artifact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scenarios.annotations import FileAnnotation
from tests.commands.calling import call
from tests.commands.ci_jobs import FILES, Job, check_out

LOST = ("five", "four", "one", "two")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_it_gets_outputs_annotations_and_transcripts(job: Job) -> None:
    place = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(job.folder / "outputs")}
    artifact = {
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_RUN_ID": "7",
    }
    (job.folder / "outputs").write_text("before=1\n")
    words = ("--baseline", str(FILES / "baseline.json"), "--require-baseline", "--fail-on-regression")
    ended = job.run(*words, "--output-dir", "results", BROKEN="yes", **place, **artifact)
    assert ended.code == 3, ended.err
    assert "Baseline: run 1, imported from `baseline.json`." in job.summary
    assert "6 scenarios, 18 and 18 trials" in job.summary
    first, *lines = (job.folder / "outputs").read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    assert first == "before=1"
    assert (outputs["verdict"], outputs["pass_rate"], outputs["cost_usd"], outputs["run"]) == (
        "regressed",
        "0.3333",
        "",
        "2",
    )
    assert re.fullmatch(r"[0-9a-f-]{36}", outputs["run_id"])
    shown = [line for line in ended.err.splitlines() if line.startswith("::")]
    assert shown == [
        f"::error file=evals/{name}.yaml,line=1::add-{name} on recorded no longer passes (baseline: run 1). notes.txt does not exist."
        for name in LOST
    ]
    assert "::error" not in ended.out
    transcript = "results/transcripts/run-2/add-one.0.txt"
    assert "I give up" in (job.folder / transcript).read_text()
    link = f"  - Transcript: `{transcript}` in the [artifacts](https://github.example/a/b/actions/runs/7#artifacts)"
    assert link in job.summary
    assert {case.get("file") for case in job.junit.findall("testcase")} == {
        f"evals/{name}.yaml" for name in (*LOST, "six", "three")
    }
    # What surefire-test-report.xsd of Maven requires, and its types of times.
    assert {"name", "tests", "errors", "skipped", "failures", "time"} <= {*job.junit.keys()}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", job.junit.get("timestamp") or "")
    times = [job.junit.get("time"), *(case.get("time") for case in job.junit.findall("testcase"))]
    assert all(re.fullmatch(r"\d+\.\d{3}", each or "") for each in times)
    assert {each.get("type") for each in job.junit.findall("testcase/failure")} == {"file_contains"}


@pytest.mark.slow
def test_a_summary_in_a_file_links_the_transcript_beside_it(job: Job) -> None:
    ended = job.run("--summary-file", "results/summary.md", "--output-dir", "results", BROKEN="yes")
    assert "::" not in ended.err.replace("http://", "")
    text = (job.folder / "results" / "summary.md").read_text()
    (place, *_) = re.findall(r"- Transcript: \[`[^`]+`\]\(([^)]+)\)", text)
    assert "I give up" in (job.folder / "results" / place).read_text()


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["check_scenarios", "run_scenarios"])
def test_a_broken_file_is_annotated_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    check_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    file = tmp_path / "evals" / "two.yaml"
    file.write_text(file.read_text().replace("file_contains", "file_contain"))
    words = () if command == "check_scenarios" else ("--target", "recorded", "--now")
    ended = call(command, "evals", *words)
    assert ended.code == 2
    (shown,) = (line for line in ended.err.splitlines() if line.startswith("::"))
    assert re.match(r"::error file=evals/two\.yaml,line=7::.*file_contain", shown)
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert "::" not in call(command, "evals", *words).err


def test_annotations_are_escaped() -> None:
    assert (
        str(FileAnnotation("a,b:c.yaml", 3, "50 %\nof it"))
        == "::error file=a%2Cb%3Ac.yaml,line=3::50 %25%0Aof it"
    )
