"""The gates that look at the transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from evaluators.model import Event, Score, Transcript
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from tests.evaluators.grading.gates.gate_samples import gate_of
from tests.evaluators.samples import events, evidence

FILES = Path(__file__).parents[3] / "files"

pytestmark = pytest.mark.spec("llm-tool-test", "No failed tool command")


def transcript_gate(transcript: Transcript, tool: Tool | None = None) -> Score:
    gate = gate_of.validate_python({"type": "no_transcript_errors", "name": "clean"})
    score: Score = gate.check(evidence(transcript, tool=tool or Tool(binary="t")))
    return score


def test_no_transcript_errors_names_its_source_and_unknown_exits() -> None:
    score = transcript_gate(events(("t add", 0), ("t list | head", 0)))
    assert score.passed is True
    assert score.message == "0 of 2 commands failed (source: structured events; 1 of 2 unknown)."
    assert (score.detail["source"], score.detail["unknown_exit"], score.detail["name"]) == (
        "events",
        1,
        "clean",
    )


def test_no_transcript_errors_says_how_many_unknown_ends_printed_an_error() -> None:
    shown = (
        Event("tool_call", "1", "Bash", "t list | head"),
        Event("tool_result", "1", output="error: no", exit_code=0),
    )
    score = transcript_gate(Transcript(events=shown, source="events"))
    said = "0 of 1 commands failed (source: structured events; 1 of 1 unknown, 1 of them printed an error)."
    assert (score.passed, score.message, score.detail["printed_errors"]) == (True, said, 1)


def test_no_transcript_errors_gives_no_verdict_on_lines_that_were_not_read() -> None:
    given = evidence(events(("t add", 0)), tool=Tool(binary="t"))
    given.__dict__["interaction"] = structs.replace(given.interaction, unread=2)
    score = gate_of.validate_python({"type": "no_transcript_errors"}).check(given)
    said = "Not read within 10 s: 2 shell lines, whose commands aren't counted."
    assert (score.passed, score.error) == (None, said)


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


def check(transcript: Transcript, answer: str = "", **gate: object) -> Score:
    score: Score = gate_of.validate_python(gate).check(evidence(transcript, answer=answer))
    return score


@pytest.mark.parametrize(
    ("where", "pattern", "passed"),
    [
        ("either", "t add --title", True),
        ("either", "Note added", True),
        ("answer", "t add --title", False),
        ("commands", "Note added", False),
        ("commands", r"^t list$", False),
    ],
)
def test_a_pattern_is_searched_in_the_answer_and_the_commands(where: str, pattern: str, passed: bool) -> None:
    ran = events(("t add --title X", 0))
    score = check(ran, "Note added.", type="transcript_matches", pattern=pattern, where=where)
    assert score.passed is passed
    assert score.detail["expected"] == pattern


def skill_call(**given: object) -> Transcript:
    return Transcript(events=(Event(type="tool_call", id="1", name="Skill", input=dict(given)),))


@pytest.mark.parametrize(
    ("transcript", "loaded"),
    [
        (skill_call(skill="notes"), True),
        (skill_call(skill="team-plugin:notes"), True),
        (skill_call(skill="other"), False),
        (events(("cat .agents/skills/notes/SKILL.md", 0)), True),
        (events(("sed -n 1,80p /home/a/.codex/skills/notes/SKILL.md", 0)), True),
        (events(("cat .agents/skills/other/SKILL.md", 0), ("ls .agents/skills/notes", 0)), False),
    ],
)
def test_a_skill_is_loaded_by_its_tool_or_by_reading_its_file(transcript: Transcript, loaded: bool) -> None:
    assert check(transcript, type="skill_loaded", skill="notes").passed is loaded
    assert check(transcript, type="skill_not_loaded", skill="notes").passed is not loaded


def test_without_events_nobody_knows_whether_a_skill_was_loaded() -> None:
    score = check(Transcript(source="transcript", text="I did it."), type="skill_loaded", skill="notes")
    assert (score.passed, score.value) == (None, None)
    assert "no events" in score.error


@pytest.mark.parametrize("kind", ["skill_loaded", "skill_not_loaded"])
def test_a_skill_that_the_program_could_not_read_is_an_error(kind: str) -> None:
    """opencode without ripgrep (case 62)."""
    stream = (FILES / "cases/62/opencode.jsonl").read_bytes()
    score = check(parse("opencode", stream), type=kind, skill="parcel-keeping")
    assert (score.passed, score.value) == (None, None)
    assert score.error == (
        "The agent called the skill 'parcel-keeping', and its program could not read it: ripgrep execution failed. "
        "Fix that on the worker, and run the trial again."
    )
    assert check(parse("opencode", stream), type="skill_not_loaded", skill="other").passed
