"""The gate that looks at the transcript."""

from __future__ import annotations

import pytest

from evaluators.model import Score, Transcript
from evaluators.tool_use.tool import Tool
from tests.evaluators.grading.gates.gate_samples import gate_of
from tests.evaluators.samples import events, evidence

pytestmark = pytest.mark.spec("llm-tool-test", "No failed tool command")


def transcript_gate(transcript: Transcript, tool: Tool | None = None) -> Score:
    gate = gate_of.validate_python({"type": "no_transcript_errors", "name": "clean"})
    score: Score = gate.check(evidence(transcript, tool=tool or Tool(binary="t")))
    return score


def test_no_transcript_errors_names_its_source_and_unknown_exits() -> None:
    score = transcript_gate(events(("t add", 0), ("t list | head", 0)))
    assert score.passed is True
    assert score.message == "0 of 2 commands failed (source: structured events; 1 with unknown exit code)."
    assert (score.detail["source"], score.detail["unknown_exit"], score.detail["name"]) == (
        "events",
        1,
        "clean",
    )


def test_no_transcript_errors_names_failed_commands() -> None:
    score = transcript_gate(Transcript(source="transcript", text="t add x\nError: no"))
    assert (score.passed, score.detail["failed"], score.detail["source"]) == (
        False,
        ["t add x"],
        "transcript",
    )


def test_no_transcript_errors_fails_without_a_transcript() -> None:
    assert transcript_gate(Transcript()).passed is False


def test_no_transcript_errors_is_an_error_with_a_bad_pattern() -> None:
    score = transcript_gate(events(("t add", 0)), Tool(command_pattern="t("))
    assert score.passed is None
    assert "not a regular expression" in score.error
