"""Events and records of real agents' sessions with a server that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluators.grading.gates.transcript_gate import McpCalled
from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.mcp_calls import mark_calls, refused_calls
from evaluators.tool_use.mcp_record import read_mcp_record, surface_of
from evaluators.tool_use.tool import McpServer, Tool
from evaluators.transcripts import parse

FILES = Path(__file__).parents[2] / "files" / "mcp"
AGENTS = {
    "claude": "claude_code",
    "codex": "codex",
    "opencode": "opencode",
    "claude-t": "claude_code",
    "codex-t": "codex",
}


def session(case: str, agent: str, server: str, *, stderr: str = "") -> tuple[Transcript, Interaction]:
    """Return a session with its calls marked by the record, and what layer 1 counts."""
    content = (FILES / case / f"{agent}.record.jsonl").read_bytes()
    tool = McpServer(name=server, command="server")
    listings = [json.loads(line) for line in content.splitlines() if b'"tools": [' in line]
    surface = surface_of(server, listings[0]["response"]["result"])
    transcript = parse(AGENTS[agent], (FILES / case / f"{agent}.stream.jsonl").read_bytes())
    record = (*read_mcp_record(content), *refused_calls(stderr, tool))
    marked = mark_calls(transcript, tool, surface, record)
    return marked, analyse(marked, Tool(mcp=tool), completed=True)


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode"])
def test_a_call_that_never_left_the_agent_takes_no_record(agent):
    stderr = (
        (FILES / "refused-call-takes-next-record" / "codex.stderr.txt").read_text()
        if agent == "codex"
        else ""
    )
    _, found = session("refused-call-takes-next-record", agent, "dots", stderr=stderr)
    ends = sorted((command.failure, command.exit_code) for command in found.commands)
    assert ends == [("", 0), ("unknown_tool", 1)]
    assert (found.error_count, found.first_try_success_rate) == (1, 0.5)
    scored = McpCalled(tool="get.item", times=1).judge([*found.commands])
    assert scored.passed


@pytest.mark.parametrize("agent", ["claude-t", "codex-t"])
def test_no_answer_is_a_failure_of_the_protocol(agent):
    _, found = session("no-answer-is-success", agent, "nasty")
    assert [(command.subcommand, command.failure) for command in found.commands] == [
        ("never", "protocol"),
        ("echo", ""),
    ]
    assert (found.error_count, found.error_rate) == (1, 0.5)


def test_two_processes_of_the_server_count_apart():
    _, found = session("two-servers-one-record", "codex", "nasty")
    lines = sorted(f"{command.line} {command.failure}".strip() for command in found.commands)
    assert lines == [
        'echo {"text":"m1"}',
        'echo {"text":"m2"}',
        'echo {"text":"m3"}',
        'echo {"text":"s2"}',
        'fail {"text":"s1"} is_error',
        'fail {"text":"s3"} is_error',
        'fail {"text":"s4"} is_error',
    ]


def test_calls_that_were_denied_are_not_run():
    tool = McpServer(name="notes", command="server")
    denied = Event("tool_result", "1", not_run="denied")
    ran = Event("tool_result", "2", success=True)
    events = (
        Event("tool_call", "1", "mcp__notes__put", input={"a": 1}),
        denied,
        Event("tool_call", "2", "mcp__notes__put", input={"a": 1}),
        ran,
    )
    record = read_mcp_record(
        b'{"number": 1, "request": {"method": "tools/call", "params": {"name": "put", "arguments": {"a": 1}}}}\n'
        b'{"number": 1, "response": {"result": {"isError": true}}}\n'
    )
    marked = mark_calls(Transcript(events=events, source="stream"), tool, None, record)
    found = analyse(marked, Tool(mcp=tool), completed=True)
    assert (found.not_run, [command.failure for command in found.commands]) == (1, ["is_error"])


def test_a_call_that_evalhubs_time_limit_cut_is_unknown():
    content = b'{"number": 1, "request": {"method": "tools/call", "params": {"name": "put"}}}\n'
    assert [(call.ended, call.failure) for call in read_mcp_record(content, was_cut=True)] == [(False, "")]
    assert [(call.ended, call.failure) for call in read_mcp_record(content)] == [(True, "protocol")]


def test_an_empty_record_says_that_nothing_was_called():
    tool = McpServer(name="notes", command="server")
    text = Transcript(text="Good morning.", source="transcript")
    known, unknown = (
        analyse(mark_calls(text, tool, None, record), Tool(mcp=tool), completed=True) for record in ((), None)
    )
    assert (known.source, known.total_commands, known.error_rate) == ("events", 0, 0.0)
    assert (unknown.source, unknown.error_rate) == ("none", None)
