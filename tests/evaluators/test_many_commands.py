"""Transcripts that consist of commands cannot fill the memory of a worker or a web server."""

from __future__ import annotations

import pytest

from evaluators.interaction import analyse
from evaluators.model import Event, Transcript
from evaluators.tool import Tool
from evaluators.tool_commands import LONGEST_SHELL_LINE, MOST_COMMANDS

pytestmark = pytest.mark.table
LINE = "git a; "


def found(*lines: str) -> int:
    events = tuple(Event("tool_call", name="Bash", command=line, id=str(n)) for n, line in enumerate(lines))
    transcript = Transcript(events=events, source="events")
    return analyse(transcript, Tool(binary="git"), completed=True).total_commands


def test_only_the_beginning_of_a_very_long_line_counts() -> None:
    most = LONGEST_SHELL_LINE // len(LINE)
    assert most <= found(LINE * (2 * most)) <= most + 1


def test_a_transcript_has_a_limited_number_of_commands() -> None:
    assert found(*[LINE * 20_000] * 4) == MOST_COMMANDS
