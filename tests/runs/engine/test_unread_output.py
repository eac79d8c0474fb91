"""Output in which no command is seen is not one without commands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from runs.compare.measure_changes import compare_run_measures
from runs.engine import run_here
from runs.models import Run, RunMeasure, Trial
from runs.targets.import_targets import import_targets
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_project
from tests.runs.carrying import launch
from tests.runs.targets.providers.agents import FILES

SCENARIO = """
name: notes
target: {command_pattern: 'mt-of-nowhere\\s+(\\S+)'}
template_folder: repo
task: {prompt: Add a note.}
evaluation:
  gates:
    - {type: no_transcript_errors}
"""
CASE = """
evalcases:
  - id: greet
    expected_outcome: A greeting.
    input_messages: [{role: user, content: Greet me.}]
    expected_messages: [{role: assistant, content: Hello}]
    execution:
      evaluators: [{name: says, type: code_judge, script: "python3 -c 'print({\\"score\\": 1.0})'"}]
"""
pytestmark = pytest.mark.django_db(transaction=True)


def run_of(suite: dict[str, bytes], template: str, **fields: Any) -> Run:
    """A finished run of a suite on a `cli` target; the program's output is the fixture's or the bundle's."""
    project = make_project()
    (imported,) = import_files(Bundle("notes", suite), project=project, by=None)
    target = {"name": "local", "provider": "cli", "command_template": template, **fields}
    import_targets(project, json.dumps({"targets": [target]}).encode(), "targets.yaml", by=None)
    for _ in range(2):
        run_here.run_here(launch(imported.version, targets=["local"]))
    found = Run.objects.order_by("pk").first()
    assert found is not None
    return found


def notes(program: str = "") -> dict[str, bytes]:
    printed = (FILES / f"programs/{program}.jsonl").read_bytes() if program else b"All done.\n"
    return {"notes.yaml": SCENARIO.encode(), "templates/repo/printed": printed}


def test_text_without_commands_leaves_tool_use_unknown() -> None:
    before = run_of(notes(), "cat printed # qwen")
    trial, other = Trial.objects.order_by("pk")
    found = trial.detail["interaction"]
    assert (found["available"], found["source"], found["total_commands"]) == (False, "none", 0)
    assert (found["error_rate"], found["first_try_success_rate"]) == (None, None)
    (warning,) = trial.detail["warnings"]
    assert warning.startswith("No command was seen in this output") and "provider: qwen_code" in warning
    (gate,) = [each for each in trial.scores if each["layer"] == "gates"]
    assert (gate["passed"], gate["message"]) == (True, "No command was seen in this output.")
    assert trial.detail["diagnosis"] == []
    # Neither equal nor different.
    measured = RunMeasure.objects.filter(run=before, measure__layer="interaction")
    assert set(measured.values_list("measure__name", flat=True)) == {"completed"}
    compared = compare_run_measures(before, other.run)
    assert compared.exit_sources == ()
    names = {each.measure for each in (*compared.headline, *compared.others) if each.scenarios}
    assert not any(name.startswith("interaction/") and "completed" not in name for name in names)


def test_a_stream_of_events_without_a_call_says_that_there_was_none() -> None:
    stream = b'{"type":"thread.started","thread_id":"t"}\n{"type":"turn.started"}\n'
    stream += b'{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}\n'
    stream += b'{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\n'
    found = analyse(parse("codex", stream), Tool(binary="mt"), completed=True)
    assert (found.available, found.source, found.total_commands, found.error_rate) == (
        False,
        "stream",
        0,
        0.0,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("program", ["gemini", "pi"])
def test_a_stream_that_nothing_reads_is_hinted_at(program: str) -> None:
    run_of(notes(program), f"cat printed # {program}")
    trial = Trial.objects.first()
    assert trial is not None and trial.outcome == "pass" and trial.answer == ""
    assert "is a stream of JSON lines" in trial.detail["warnings"][0]


def test_a_stream_is_not_judged_as_an_answer() -> None:
    printed = (FILES / "programs/cline.jsonl").read_bytes()
    run_of({"greet.yaml": CASE.encode(), "printed": printed}, "cat printed # cline")
    trial = Trial.objects.first()
    assert trial is not None
    assert (trial.outcome, trial.error_kind) == ("error", "transcript")
    assert "is a stream of JSON lines" in trial.error and "cline: evalhub has no reader" in trial.error
    assert not [each for each in trial.scores if each["layer"] == "evaluators"]


def test_a_parser_makes_a_stream_readable() -> None:
    stream = (FILES / "streams/codex.jsonl").read_bytes()
    suite = {**notes(), "templates/repo/printed": stream}
    suite["notes.yaml"] = SCENARIO.replace("mt-of-nowhere", "taskmgr").encode()
    run_of(suite, "cat printed", parser="codex")
    trial = Trial.objects.first()
    assert trial is not None and "warnings" not in trial.detail
    found = trial.detail["interaction"]
    assert (found["source"], found["total_commands"], found["error_count"]) == ("stream", 6, 2)


def test_qwen_says_of_every_call_that_it_was_carried_out() -> None:
    raw = (FILES / "programs/qwen.jsonl").read_bytes()
    found = analyse(parse("claude_code", raw), Tool(binary="mt"), completed=True)
    assert found.total_commands == 6
    assert not [each for each in found.commands if each.exit_code is not None]
