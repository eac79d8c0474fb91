from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.model import Event, Transcript, Usage
from evaluators.tool_use.diagnosis import waste_scores
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse

STREAMS = Path(__file__).parents[2] / "files" / "streams"
TOOL = Tool(command_pattern=r"taskmgr\s+(\S+)")


def wasted(transcript: Transcript, *, passed: bool = True, tool: Tool = TOOL) -> dict[str, float | None]:
    commands = analyse(transcript, tool, completed=True).commands
    return {score.name: score.value for score in waste_scores(transcript, commands, passed=passed)}


@pytest.mark.parametrize("agent", ["claude_code", "opencode"])
def test_agents_that_tell_tokens_per_turn_have_waste(agent: str) -> None:
    found = wasted(parse(agent, (STREAMS / f"{agent}.jsonl").read_bytes()))
    assert found == {
        "tokens_in_failed_commands": 240.0,
        "tokens_in_repeated_help": 0.0,
        "tokens_after_done": 120.0,
        "wasted_tokens": 360.0,
    }


def test_waste_is_unknown_without_tokens_per_turn() -> None:
    assert wasted(parse("codex", (STREAMS / "codex.jsonl").read_bytes())) == {}


def test_a_failed_trial_was_never_done() -> None:
    stream = parse("claude_code", (STREAMS / "claude_code.jsonl").read_bytes())
    found = wasted(stream, passed=False)
    assert "tokens_after_done" not in found
    assert found["wasted_tokens"] == 240.0


def turn(*commands: tuple[str, int], tokens: int = 100) -> list[Event]:
    events = []
    for number, (line, code) in enumerate(commands):
        usage = Usage(tokens - 10, 10) if not number else None
        events += [
            Event("tool_call", name="bash", command=line, usage=usage),
            Event("tool_result", exit_code=code),
        ]
    return events


def test_help_that_was_read_before_is_waste() -> None:
    events = [
        *turn(("task add --help", 0)),
        *turn(("task list --help", 0)),
        *turn(("task add --help", 0), ("ls", 0)),
        *turn(("task add milk", 0)),
    ]
    found = wasted(Transcript(events=tuple(events), source="events"), tool=Tool(binary="task"))
    assert found["tokens_in_repeated_help"] == 50.0
    assert found["wasted_tokens"] == 50.0


def test_calls_before_the_first_known_turn_leave_waste_unknown() -> None:
    events = [Event("tool_call", name="bash", command="task add"), *turn(("task list", 0))]
    assert wasted(Transcript(events=tuple(events), source="events"), tool=Tool(binary="task")) == {}


def test_structured_events_may_tell_tokens() -> None:
    log = (
        b'{"event": "tool_call", "id": 1, "tool": "bash", "command": "task add", "usage": {"input": 90, "output": 10}}\n'
        b'{"event": "tool_result", "id": 1, "exit_code": 1}\n'
        b'{"event": "message", "text": "Sorry.", "usage": "many"}\n'
    )
    assert wasted(parse("events", log), tool=Tool(binary="task"))["tokens_in_failed_commands"] == 100.0
