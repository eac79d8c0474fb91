"""Attempts at a subcommand: until which try, and with which messages before."""

from __future__ import annotations

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.attempts import LONGEST_MESSAGE, MOST_ERRORS, Attempts, error_message, find_attempts
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool


def tries(*lines: tuple[str, object, int | None]) -> dict[str, Attempts]:
    """Return the attempts in a session of these commands, each with output and exit code."""
    events: list[Event] = []
    for number, (line, output, code) in enumerate(lines):
        events.append(Event("tool_call", id=str(number), command=line))
        events.append(Event("tool_result", id=str(number), output=output, exit_code=code))
    transcript = Transcript(events=tuple(events), source="events")
    found = analyse(transcript, Tool(binary="tool"), completed=True)
    return find_attempts(transcript, found.commands)


def test_tries_are_counted_until_one_works() -> None:
    assert tries(
        ("tool export --bad", "error: unexpected argument '--bad' found", 2),
        ("tool export --help", "Usage: tool export", 0),
        ("tool export --worse", "error: unexpected argument '--worse' found", 2),
        ("tool export", "done", 0),
        ("tool export", "done", 0),
        ("tool list", "none", 0),
    ) == {
        "export": Attempts(
            {"3": 1, "1": 1},
            {"unexpected argument '--bad' found": 1, "unexpected argument '--worse' found": 1},
        ),
        "list": Attempts({"1": 1}),
    }


def test_a_subcommand_that_never_worked_has_no_tries() -> None:
    assert tries(("tool export", "no", 1), ("tool export", "no", 1)) == {"export": Attempts({}, {"no": 2})}


def test_an_exit_code_that_is_not_known_is_no_success() -> None:
    assert tries(("tool export", "?", None)) == {}


def test_the_messages_that_come_most_often_are_kept() -> None:
    lines = [("tool export", f"error: {n}", 1) for n in range(MOST_ERRORS + 3)]
    (found,) = tries(*lines, ("tool export", f"error: {MOST_ERRORS + 2}", 1)).values()
    assert len(found.errors) == MOST_ERRORS
    assert found.errors[str(MOST_ERRORS + 2)] == 2


def test_commands_found_in_text_have_no_messages() -> None:
    transcript = Transcript(
        text="$ tool export --bad\nerror: no\nexit code 2\n$ tool export\n", source="transcript"
    )
    found = analyse(transcript, Tool(binary="tool"), completed=True)
    assert find_attempts(transcript, found.commands).get("export", Attempts()).errors == {}


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("error: no such task", "no such task"),
        ("Reading.\ntaskmgr: error: no such task\nSee --help.", "no such task"),
        ("\x1b[31merror:\x1b[0m no task", "no task"),
        ("fatal: not a repository", "not a repository"),
        ("Usage: tool export\nTry again.", "Try again."),
        ('Traceback (most recent call last):\n  File "a.py", error\nValueError: bad', "ValueError: bad"),
        ({"stdout": "half done", "stderr": "error: disk full"}, "disk full"),
        ({"stdout": "error: disk full", "stderr": ""}, "disk full"),
        ("x" * 5000, "x" * LONGEST_MESSAGE),
        ("a\n" * 100_000 + "error: at the end", "at the end"),
        ("", ""),
        (" \n ", ""),
        (None, ""),
        ([1, 2], ""),
    ],
)
def test_the_message_is_the_line_with_the_cause(output: object, message: str) -> None:
    assert error_message(output) == message
