"""The gate on a command that the agent ran."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.grading.gates.command_gates import NO_COMMANDS
from evaluators.model import Event, Score, Transcript
from evaluators.tool_use.tool import Tool
from tests.evaluators.grading.gates.gate_samples import gate_of
from tests.evaluators.samples import events, evidence

RAN = events(
    ("notes add --title=Milk && git status", 0),
    ("npx notes --json add --title 'Buy bread' --force", 1),
    ("/usr/bin/notes list | head", 0),
    ("notes restore --help", 0),
)


def check(transcript: Transcript = RAN, tool: Tool | None = None, **gate: Any) -> Score:
    value = gate_of.validate_python({"type": "command_ran", **gate})
    score: Score = value.check(evidence(transcript, tool=tool))
    return score


@pytest.mark.parametrize("tool", [None, Tool(binary="notes")], ids=["no tool", "the tool"])
@pytest.mark.parametrize(
    ("gate", "passed"),
    [
        ({"words": ["notes", "add"]}, True),
        ({"words": ["add"]}, False),
        ({"words": ["notes", "list", "add"]}, False),
        ({"words": ["notes", "add"], "flags": ["--title Milk"]}, True),
        ({"words": ["notes", "add"], "flags": ["--title=Buy bread"]}, True),
        ({"words": ["notes", "add"], "flags": ["--title 'Buy bread'", "--json"]}, True),
        ({"words": ["notes", "add"], "flags": ["--title Tea"]}, False),
        ({"words": ["notes", "add"], "flags": ["--tit"]}, False),
        ({"words": ["notes", "add"], "flags": ["--json"], "without_flags": ["--force"]}, False),
        ({"words": ["notes", "add"], "without_flags": ["--force"], "times": 1}, True),
        ({"words": ["notes", "add"], "times": 2}, True),
        ({"words": ["notes", "delete"], "times": 0}, True),
        ({"words": ["notes", "restore"]}, False),
        ({"words": ["git", "status"]}, True),
        ({"words": ["./notes", "list"]}, True),
    ],
)
def test_a_command_is_found_by_its_words_and_flags(gate: dict[str, Any], passed: bool, tool: Any) -> None:
    assert check(tool=tool, **gate).passed is passed


def test_the_message_has_what_was_expected_and_found() -> None:
    score = check(words=["notes", "add"], flags=["--title Tea"], without_flags=["--force"])
    assert score.message == "`notes add --title Tea` without --force ran 0 times; expected at least 1."
    assert score.detail["commands"][0] == "notes add --title=Milk"
    assert check(words=["notes", "list"]).message == "`notes list` ran once; expected at least 1."


def test_a_call_that_was_denied_did_not_run() -> None:
    denied = Event("tool_call", name="bash", command="notes add", not_run="denied")
    assert check(Transcript(events=(denied,), source="events"), words=["notes", "add"]).passed is False


def test_without_events_it_is_not_known() -> None:
    score = check(Transcript(text="I ran notes add.", source="transcript"), words=["notes", "add"])
    assert (score.passed, score.error) == (None, NO_COMMANDS)


@pytest.mark.parametrize(
    ("answer", "passed", "message"),
    [
        ("Added Milk.", True, "The answer doesn't contain 'sorry'."),
        ("I am sorry.", False, "The answer contains 'sorry'."),
        ("Sorry.", True, "The answer doesn't contain 'sorry'."),
        (" ", False, "There is no answer."),
    ],
)
def test_an_answer_lacks_a_text(answer: str, passed: bool, message: str) -> None:
    gate = gate_of.validate_python({"type": "answer_lacks", "substring": "sorry"})
    score = gate.check(evidence(Transcript(), answer=answer))
    assert (score.passed, score.message) == (passed, message)
