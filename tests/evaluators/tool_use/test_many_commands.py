"""Transcripts that consist of commands cannot fill the memory of a worker or a web server."""

from __future__ import annotations

import pytest

from evalhub.lib.limits import LONGEST_LINE
from evaluators.model import Event, Transcript
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.tool import McpServer, Tool
from evaluators.tool_use.tool_commands import MOST_COMMANDS, Matcher, find_in_shell_calls
from tests.evaluators.grading.gates.gate_samples import gate_of
from tests.evaluators.samples import events, evidence

pytestmark = pytest.mark.table
LINE = "git a; "


def found(*lines: str) -> Interaction:
    events = tuple(Event("tool_call", name="Bash", command=line, id=str(n)) for n, line in enumerate(lines))
    return analyse(Transcript(events=events, source="events"), Tool(binary="git"), completed=True)


def test_a_very_long_line_with_commands_cannot_be_counted() -> None:
    assert found(LINE * (2 * LONGEST_LINE // len(LINE))).problem == (
        "A command line has more than 256,000 characters. Its commands can't be counted."
    )


def test_a_very_long_text_after_the_last_command_is_passed_over() -> None:
    counted = found(f"{LINE}cat > out <<'EOF'\n{'x' * LONGEST_LINE}\nEOF")
    assert (counted.problem, counted.total_commands) == ("", 1)


def test_a_transcript_has_a_limited_number_of_commands() -> None:
    assert found(*[LINE * 20_000] * 4).problem == (
        "The transcript has more than 50,000 commands. They can't be counted."
    )


def test_lines_that_take_too_long_are_counted_and_not_read() -> None:
    events = tuple(
        Event("tool_call", str(n), "Bash", line) for n, line in enumerate(("git a", "ls", "git b"))
    )
    read = find_in_shell_calls(pair_calls(events), Matcher(binary=("git",)), seconds=1e-9)
    assert ([each.line for each in read.commands], read.unread) == (["git a"], 1)
    assert find_in_shell_calls(pair_calls(events), Matcher(binary=("git",))).unread == 0


def test_gates_give_no_verdict_on_commands_that_cannot_be_counted() -> None:
    shell = events(("git a; " * (MOST_COMMANDS // 2), 0), ("git b; " * (MOST_COMMANDS // 2 + 1), 0))
    server = Transcript(
        events=tuple(
            Event("tool_call", name="mcp__notes__read", id=str(n)) for n in range(MOST_COMMANDS + 1)
        ),
        source="events",
    )
    for given, kind, tool in (
        (shell, "no_transcript_errors", Tool(binary="git")),
        (server, "mcp_not_called", Tool(mcp=McpServer(name="notes", url="http://127.0.0.1:1/"))),
    ):
        gate = gate_of.validate_python({"type": kind})
        score = gate.check(evidence(given, tool=tool))
        assert (score.passed, score.error) == (None, score.message)
        assert "can't be counted" in score.error
