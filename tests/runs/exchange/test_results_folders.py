"""llm-tool-test's results: imported from its files, and a run exported as its results folder."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaluators.model import Event, Transcript, Usage
from evaluators.tool_use.diagnosis import waste_scores
from evaluators.tool_use.interaction import analyse, score_interaction
from evaluators.tool_use.tool import Tool
from runs.errors import RequestError
from runs.exchange.exports.exports import export_run
from runs.exchange.imports.import_results import import_results
from runs.exchange.results_files.importers import pack_folder
from runs.models import CommandRecord, Run, RunMeasure, Trial
from runs.models.trial import scores_json
from tests.builders import close, make_project, make_run, make_suite, make_trial
from tests.commands.calling import call
from tests.shell_events import shell
from tests.trial_parts import make_transcript, make_workspace

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
FOLDER = "20261101-100000-codex-default-create"
LOG = "\n".join(
    json.dumps(line)
    for line in (
        {"event": "tool_call", "id": "1", "tool": "shell", "command": "task add"},
        {"event": "tool_result", "id": "1", "exit_code": 2, "output": "error: name missing"},
        {"event": "tool_call", "id": "2", "tool": "shell", "command": "task add milk"},
        {"event": "tool_result", "id": "2", "exit_code": 0, "output": "added"},
    )
)
GATES = [
    {"gate_type": "FileExists", "passed": True, "message": "ok"},
    {"gate_type": "CommandSucceeds", "passed": False, "message": "exit 1"},
]


def run_json(**changes: Any) -> dict[str, Any]:
    return {
        "scenario_id": "create", "tool": "codex", "model": "default", "timestamp": "2026-11-01T10:00:00Z",
        "duration_secs": 12.5, "cost_estimate_usd": 0.25, "token_usage": {"input": 100, "output": 20},
        "target": {"binary": "task"}, **changes,
    }  # fmt: skip


def record(**changes: Any) -> dict[str, Any]:
    return {
        "id": "run-1", "scenario_id": "create", "tool": "codex", "model": "default", "duration_secs": 12.5,
        "timestamp": "2026-11-01T10:00:00Z", "outcome": "Fail: 1/2 gates passed", "judge_score": None,
        "metrics": {"gates_passed": 1, "gates_total": 2, "details": GATES},
        "transcript_path": f"{FOLDER}/artifacts", **changes,
    }  # fmt: skip


def folder(at: Path, *, spec_layout: bool = False, **changes: Any) -> Path:
    """Write a results folder with one run."""
    run = at / "results" / FOLDER
    inside = run if spec_layout else run / "artifacts"
    inside.mkdir(parents=True)
    (inside / "run.json").write_text(json.dumps(run_json(**changes)))
    (inside / "events.jsonl").write_text(LOG)
    (inside / "transcript.raw.txt").write_text("I added milk.")
    (run / "metrics.json").write_text(json.dumps(record()["metrics"]))
    (at / "results" / "results.jsonl").write_text(json.dumps(record()) + "\n")
    return at / "results"


@pytest.mark.parametrize("spec_layout", [False, True])
def test_layer_1_is_computed_again_from_a_folder(tmp_path, spec_layout):
    place = folder(tmp_path, spec_layout=spec_layout)
    (run,) = import_results(make_project(), pack_folder(place), "results", by=None)
    trial = Trial.objects.get()
    assert (run.target.name, run.model, run.cost_usd, run.tokens_in) == ("codex", "", 0.25, 100)
    assert (trial.outcome, trial.seconds, trial.cost_usd) == ("fail", 12.5, 0.25)
    counted = {row["name"]: row.get("value") for row in trial.scores if row["layer"] == "interaction"}
    assert (counted["total_commands"], counted["error_rate"]) == (2, 0.5)
    assert "completed" not in counted
    assert [row["name"] for row in trial.scores if row["layer"] == "gates"] == [
        "file_exists",
        "command_succeeds",
    ]
    assert list(CommandRecord.objects.values_list("line", "exit_code")) == [
        ("task add", 2),
        ("task add milk", 0),
    ]
    assert trial.transcript.unpack().events
    assert RunMeasure.objects.filter(run=run, scenario=None, measure__name="error_rate", mean=0.5).exists()


def test_lines_alone_give_outcomes_and_gates():
    lines = [record(), record(outcome="Dry run"), record(scenario_id="export", outcome="PASS"), "broken {"]
    content = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines).encode()
    (run,) = import_results(make_project(), content, "results.jsonl", by=None)
    assert (run.trials, run.passed, run.failed) == (2, 1, 1)
    warnings = " ".join(run.warnings)
    assert "skipped lines that are not results: 4" in warnings
    assert "skipped 1 dry run" in warnings
    assert "layer 1 is not measured" in warnings


def test_the_specifications_metrics_are_read(tmp_path):
    place = folder(tmp_path, outcome=None)
    own = {"gate_results": [{"type": "file_exists", "passed": True, "detail": "ok"}], "judge_score": 0.9}
    (place / FOLDER / "metrics.json").write_text(json.dumps({**own, "outcome": "Pass"}))
    (place / "results.jsonl").unlink()
    import_results(make_project(), pack_folder(place), "results", by=None)
    trial = Trial.objects.get()
    judge = next(row for row in trial.scores if row["layer"] == "judge")
    assert (trial.outcome, judge["value"], judge["passed"]) == ("pass", 0.9, True)


def test_a_stored_scenario_names_the_tool(tmp_path):
    project = make_project()
    criteria = {"tool": {"binary": "task"}}
    make_suite(project, ("create",), name="llm-tool-test", criteria=criteria)
    import_results(project, pack_folder(folder(tmp_path, target=None)), "results", by=None)
    assert CommandRecord.objects.count() == 2


def used_trial(run: Run, key: str, transcript: Transcript, tool: Tool, **changes: Any) -> Trial:
    interaction = analyse(transcript, tool, completed=True)
    own = (
        {"layer": "gates", "name": "file_exists", "passed": True, "value": 1.0, "message": "There."},
        {"layer": "judge", "name": "judge", "value": 0.8, "passed": True},
    )
    wasted = waste_scores(transcript, interaction.commands, passed=True)
    rows = [*scores_json((*score_interaction(interaction), *wasted)), *own]
    trial = make_trial(
        run, key, scores=rows, detail={"interaction": interaction.as_json()}, seconds=3.5, cost_usd=0.5,
        tokens_in=1000, tokens_out=50, **changes,
    )  # fmt: skip
    make_transcript(trial, transcript.events, text=transcript.text)
    return trial


FIGURES = ("layer", "name", "value", "passed")


def figures(run: Run) -> list[Any]:
    rows = run.trial_set.order_by("position", "pk")
    return [
        (
            trial.scenario.key,
            *(
                trial.outcome,
                trial.seconds,
                trial.cost_usd,
                trial.tokens_in,
                trial.tokens_out,
                trial.exit_code,
            ),
            sorted(tuple(str(row.get(name)) for name in FIGURES) for row in trial.scores),
            list(trial.commands.values_list("line", "subcommand", "exit_code", "failed")),
        )
        for trial in rows
    ]


@pytest.fixture
def run() -> Run:
    tool = Tool(binary="task")
    version = make_suite(
        make_project(), ("create", "export"), name="Basics", criteria={"tool": {"binary": "task"}}
    )
    made = make_run(version, model="small", tool_version="task 2.0")
    call, failed = shell("task add", "no name", 2)
    events = (replace(call, usage=Usage(90, 10)), failed, *shell("task add milk", "ok", 0))
    last = Event("message", role="assistant", text="Done. Mail me at ann@example.org.")
    for key in ("create", "create", "export"):
        trial = used_trial(made, key, Transcript(events=(*events, last), source="events", text="Done."), tool)
        found = analyse(trial.transcript.unpack(), tool, completed=True).commands
        for each in found:
            CommandRecord.objects.create(
                trial=trial, n=each.n, line=each.line, subcommand=each.subcommand or "", exit_code=each.exit_code,
                failed=each.failed, retry_of=each.retry_of, event=each.event,
            )  # fmt: skip
    return close(made)


def test_an_exported_run_imports_with_the_same_figures(run):
    content = export_run(run.pk, "llm-tool-test")
    (again,) = import_results(make_project("other"), content, "run.zip", by=None)
    assert figures(again) == figures(run)
    assert (again.suite.name, again.target.name, again.model, again.tool_version) == (
        *("Basics", run.target.name, "small"),
        "task 2.0",
    )


def test_an_export_has_the_layout_and_no_secrets(run):
    content = export_run(run.pk, "llm-tool-test")
    assert content == export_run(run.pk, "llm-tool-test")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
        texts = "".join(archive.read(name).decode() for name in names)
        lines = archive.read("results.jsonl").decode().splitlines()
    assert len({name.split("/")[0] for name in names}) == 4
    assert sum(name.endswith("/artifacts/run.json") for name in names) == 3
    assert sum(name.endswith("/metrics.json") for name in names) == 3
    assert "ann@example.org" not in texts and "[REDACTED_EMAIL]" in texts
    assert [json.loads(line)["outcome"] for line in lines] == ["Pass"] * 3


def test_an_export_has_the_workspaces_texts(run):
    trial = run.trial_set.order_by("position", "pk").first()
    files = {
        "notes/milk.txt": b"Ask ann@example.org.", "run.json": b'{"scenario_id": "planted", "tool": "x"}', "photo.png": b"\0\1",
        "long.txt": b"a" * 300_000, ".git/config": b"[core]", "results.jsonl": b'{"scenario_id": "planted"}',
    }  # fmt: skip
    make_workspace(trial, files)
    content = export_run(run.pk, "llm-tool-test")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        inside = {name.partition("/fixture/")[2]: name for name in archive.namelist() if "/fixture/" in name}
        folder = inside["notes/milk.txt"].partition("/")[0]
        about = json.loads(archive.read(f"{folder}/artifacts/run.json"))
        assert inside.keys() == {"notes/milk.txt", "run.json", "results.jsonl"}
        assert archive.read(inside["notes/milk.txt"]) == b"Ask [REDACTED_EMAIL]."
    assert about["fixture_left_out"] == ["photo.png", "long.txt"]
    (again,) = import_results(make_project("other"), content, "run.zip", by=None)
    assert figures(again) == figures(run)


def test_an_export_leaves_out_what_an_import_would_refuse(run):
    first, second, _ = run.trial_set.order_by("position", "pk")
    make_workspace(first, {f"{n}.txt": b"x" for n in range(4_990)})
    make_workspace(second, {"a.txt": b"x"})
    content = export_run(run.pk, "llm-tool-test")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert len(archive.namelist()) == 5_000
    assert import_results(make_project("other"), content, "run.zip", by=None)


def test_a_workspace_that_cannot_be_read_is_named(run):
    trial = run.trial_set.order_by("position", "pk").first()
    kept = make_workspace(trial, {"a.txt": b"x"})
    kept.sha256 = "0" * 64
    kept.save()
    with zipfile.ZipFile(io.BytesIO(export_run(run.pk, "llm-tool-test"))) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/run.json")]
    assert sum("Its file is not on this server." in text for text in texts) == 1


def test_the_command_writes_and_reads_folders(run, tmp_path):
    assert "Name its file with --output" in call("export_run", str(run.pk), "--format", "llm-tool-test").err
    call("export_run", str(run.pk), "--format", "llm-tool-test", "--output", str(tmp_path / "a.zip"))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path / "results")
    make_project("other")
    call("import_results", str(tmp_path / "results"), "--project", "other")
    assert figures(Run.objects.last()) == figures(run)


def test_a_file_of_nobody_is_refused():
    with pytest.raises(RequestError, match="no results found"):
        import_results(make_project(), b'{"scenario": 1}', "x.json", by=None)
