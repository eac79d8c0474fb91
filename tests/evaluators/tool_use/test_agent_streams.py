"""The streams that coding agents print: a recorded session of each, and the cases that it lacks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evaluators.model import Event, Transcript, Usage
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import UnreadableTranscript, parse
from tests.linear_time import assert_linear_time, quarter

STREAMS = Path(__file__).parents[2] / "files" / "streams"
AGENTS = ["codex", "claude_code", "opencode"]
KNOWN: dict[str, dict[str, Any]] = {
    "codex": {"type": "thread.started"},
    "claude_code": {"type": "system"},
    "opencode": {"type": "step_start"},
}
"""A line of each that becomes no event."""
CODEX_SESSION = b"\n".join(
    json.dumps({"timestamp": "2026-11-02T09:00:00.000Z", "type": type, "payload": payload}).encode()
    for type, payload in (
        ("session_meta", {"id": "01a1", "cwd": "/w", "cli_version": "0.169.0"}),
        ("event_msg", {"type": "user_message", "message": "Implement it."}),
        ("response_item", {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}'}),
        ("response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text"}]}),
    )
)
"""What Codex keeps of a session for itself, which is not what `codex exec --json` prints."""
OLD_CODEX_SESSION: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Implement it."}]},
    {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c"},
    {"type": "function_call_output", "call_id": "c", "output": "a.txt"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]
"""What Codex kept before 0.44."""
GEMINI_STREAM: list[dict[str, Any]] = [
    {"type": "init", "session_id": "s", "model": "g"},
    {"type": "message", "role": "user", "content": "Implement it."},
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": {"command": "ls"}},
    {"type": "tool_result", "tool_id": "1", "status": "success", "output": "a.txt"},
    {"type": "message", "role": "assistant", "content": "Done."},
    {"type": "result", "status": "success"},
]
EVENTS: list[dict[str, Any]] = [
    {"type": "tool_call", "id": "1", "name": "shell", "command": "ls"},
    {"type": "tool_result", "id": "1", "output": "a.txt", "exit_code": 0},
    {"type": "output", "text": "Done."},
]
CALLED: dict[str, dict[str, Any]] = {
    "codex": {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}},
    "claude_code": {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
    "opencode": {"type": "tool_use", "part": {"tool": "bash"}},
}
"""A call of each."""
ANSWER = "Created the task and listed it."


def recorded(agent: str) -> Transcript:
    return parse(agent, (STREAMS / f"{agent}.jsonl").read_bytes())


def read(agent: str, *lines: dict[str, Any]) -> Transcript:
    return parse(agent, "\n".join(map(json.dumps, lines)).encode())


@pytest.mark.parametrize("agent", AGENTS)
def test_it_finds_the_commands_of_a_recorded_session(agent):
    metrics = analyse(recorded(agent), Tool(binary="x", command_pattern=r"taskmgr\s+(\S+)"), completed=True)
    counts = (metrics.total_commands, metrics.error_count, metrics.help_seeking, metrics.unique_commands)
    assert (metrics.source, *counts) == ("stream", 6, 2, 1, 5)
    assert [command.exit_code for command in metrics.commands] == [0, 1, 1, 0, 0, 0]
    calls = {each.name: each.calls for each in metrics.subcommands}
    helps = sum(command.help for command in metrics.commands)
    assert (calls.get("creat"), calls.get("create"), calls.get("list"), helps) == (1, 2, 2, 1)


@pytest.mark.parametrize("agent", AGENTS)
def test_it_finds_answer_and_usage_of_a_recorded_session(agent):
    found = recorded(agent)
    assert (found.answer, found.usage) == (ANSWER, Usage(700, 140))
    assert (found.problems, found.unknown_events) == ((), 0)


def test_it_takes_costs_only_from_who_knows_them():
    costs = {agent: recorded(agent).cost_usd for agent in AGENTS}
    assert costs == {"codex": None, "claude_code": 0.007, "opencode": None}


@pytest.mark.parametrize(("version", "noted"), [("2.9.1", False), ("3.0.1", True)])
def test_a_newer_claude_stream_is_read_with_a_note(version, noted):
    raw = (STREAMS / "claude_code.jsonl").read_text().splitlines()
    begin = json.dumps({"type": "system", "subtype": "init", "claude_code_version": version})
    found = parse("claude_code", "\n".join([begin, *raw]).encode())
    assert ([f"Claude Code {version} is newer" in problem for problem in found.problems] == [True]) is noted
    assert found.answer == ANSWER


@pytest.mark.hostile
@pytest.mark.parametrize("version", ["1" * 1_000_000, "1." * 500_000, "11111111." * 100_000])
def test_a_hostile_version_takes_linear_time(version):
    def read(version):
        begin = json.dumps({"type": "system", "subtype": "init", "claude_code_version": version})
        parse("claude_code", "\n".join([begin, json.dumps({"type": "result", "result": "Done."})]).encode())

    assert_linear_time(read, quarter(version), version)


def test_opencode_events_have_times():
    call, result = [event for event in recorded("opencode").events if event.type.startswith("tool")][:2]
    assert call.timestamp == "2026-11-21T20:25:38.556000Z"
    assert result.seconds == pytest.approx(0.903)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "raw", [b"", b"no stream\n", b"[1]", b"3"], ids=["nothing", "text", "list", "number"]
)
def test_it_refuses_what_is_no_stream(agent, raw):
    with pytest.raises(UnreadableTranscript):
        parse(agent, raw)


@pytest.mark.parametrize("agent", AGENTS)
def test_it_reads_on_after_a_line_that_is_cut(agent):
    raw = (STREAMS / f"{agent}.jsonl").read_bytes()
    found = parse(agent, raw + b'{"type":"item.st')
    assert len(found.problems) == 1
    assert found.events == recorded(agent).events


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("noise", [{"type": "brand-new"}, {"type": 3}, {}], ids=["type", "number", "none"])
def test_unknown_events_are_counted_and_kept(agent, noise):
    found = read(agent, KNOWN[agent], noise)
    assert (found.unknown_events, found.events[0].metadata) == (1, noise)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("other", [*AGENTS, "codex_session"])
def test_the_stream_of_another_program_is_unreadable(agent, other):
    raw = CODEX_SESSION if other == "codex_session" else (STREAMS / f"{other}.jsonl").read_bytes()
    if other == agent:
        assert parse(agent, raw).unknown_events == 0
        return
    with pytest.raises(UnreadableTranscript, match="none of its events has a known type"):
        parse(agent, raw)


@pytest.mark.parametrize(
    ("parser", "others"),
    [
        *((parser, OLD_CODEX_SESSION) for parser in (*AGENTS, "events", "trace")),
        *((parser, GEMINI_STREAM) for parser in (*AGENTS, "events", "trace")),
        *((parser, EVENTS) for parser in AGENTS),
    ],
)
def test_calls_of_another_program_are_never_left_out(parser, others):
    with pytest.raises(UnreadableTranscript):
        read(parser, *others)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("other", [*AGENTS, "codex_session"])
def test_calls_after_one_event_of_the_agent_are_not_left_out(agent, other):
    first = (STREAMS / f"{agent}.jsonl").read_bytes().splitlines(keepends=True)[0]
    rest = CODEX_SESSION if other == "codex_session" else (STREAMS / f"{other}.jsonl").read_bytes()
    if other == agent:
        assert pair_calls(parse(agent, rest).events)
        return
    with pytest.raises(UnreadableTranscript, match="look like tool calls"):
        parse(agent, first + rest)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_unknown_kind_of_call_is_an_error_where_no_call_is_known(agent):
    new = {"type": "local_tool_call", "command": "ls"}
    with pytest.raises(UnreadableTranscript, match=r"look like tool calls .*local_tool_call"):
        read(agent, KNOWN[agent], new)
    assert read(agent, KNOWN[agent], CALLED[agent], new).unknown_events == 1


@pytest.mark.parametrize("parser", ["events", "trace", "otel"])
def test_a_codex_session_file_is_no_log_of_events(parser):
    with pytest.raises(UnreadableTranscript):
        parse(parser, CODEX_SESSION)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_session_that_was_ended_at_once_can_be_read(agent):
    assert read(agent, KNOWN[agent]).events == ()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("odd", [None, 3, "x", [3], {}], ids=str)
def test_no_shape_of_a_line_breaks_it(agent, odd):
    kinds = ["item.completed", "turn.completed", "assistant", "user", "result", "tool_use", "text", "error"]
    fields = ["item", "usage", "message", "part", "result", "error", "total_cost_usd", "timestamp"]
    for kind in [*kinds, "step_finish", "reasoning", "item.started", "turn.failed"]:
        read(agent, CALLED[agent], {"type": kind, **dict.fromkeys(fields, odd)})
        read(
            agent,
            CALLED[agent],
            {"type": kind, "item": {"type": odd, "id": odd}, "message": {"content": odd, "id": odd}},
        )
        call = dict.fromkeys(("exit_code", "status", "command", "arguments", "error"), odd)
        read(agent, CALLED[agent], {"type": kind, "item": {"type": "command_execution", **call}})
        read(
            agent,
            CALLED[agent],
            {"type": kind, "part": {"state": odd, "tokens": odd, "cost": odd}, "is_error": odd},
        )


def item(**fields: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": "i", **fields}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"type": "mcp_tool_call", "tool": "search", "arguments": {"q": 1}, "result": "r", "status": "completed"},
            (Event("tool_call", "i", "search", input={"q": 1}), Event("tool_result", "i", "search", output="r", success=True)),
        ),
        (
            {"type": "mcp_tool_call", "tool": "search", "error": {"message": "no"}},
            (
                Event("tool_call", "i", "search"),
                Event("tool_result", "i", "search", output={"message": "no"}, success=False, metadata={"protocol": True}),
            ),
        ),
        (
            {"type": "file_change", "changes": [{"path": "a"}], "status": "declined"},
            (
                Event("tool_call", "i", "file_change", input={"changes": [{"path": "a"}]}),
                Event("tool_result", "i", "file_change", not_run="denied"),
            ),
        ),
        ({"type": "reasoning", "text": "hm"}, (Event("model_step", "i", "reasoning", text="hm"),)),
        ({"type": "error", "message": "no"}, (Event("error", "i", text="no"),)),
    ],
    ids=["tool", "failed tool", "file", "reasoning", "error"],
)  # fmt: skip
def test_codex_has_more_than_commands(fields, expected):
    assert read("codex", item(**fields)).events == expected


def test_a_codex_command_that_never_ended_is_a_call_without_result():
    begun = {"type": "item.started", "item": {"id": "i", "type": "command_execution", "command": "t x"}}
    found = read("codex", begun)
    assert [(event.type, event.command) for event in found.events] == [("tool_call", "t x")]


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "u"}]}, "a"),
        ({"response": {"content": [{"text": "a"}, {"text": "b"}]}}, "a \nb"),
        ({"output": "a"}, "a"),
        (item(type="response", content=[{"type": "text", "text": "a"}]), "a"),
        ([item(type="agent_message", text="a"), item(type="agent_message", text="b")], "b"),
    ],
    ids=["messages", "response", "output", "segments", "list"],
)
def test_codex_may_print_one_json_value(value, answer):
    assert parse("codex", json.dumps(value, indent=2).encode()).answer == answer


def test_codex_adds_up_the_turns_and_reports_a_failed_one():
    turn = {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 2}}
    found = read("codex", turn, turn, {"type": "turn.failed", "error": {"message": "quota"}})
    assert found.usage == Usage(6, 4)
    assert found.events == (Event("error", text="quota"),)


def assistant(id: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 4, "output_tokens": 2}
    return {"type": "assistant", "message": {"id": id, "content": list(blocks), "usage": usage}}


def test_a_claude_session_that_was_ended_counts_each_message_once():
    text, thought = {"type": "text", "text": "hi"}, {"type": "thinking", "thinking": "hm"}
    found = read("claude_code", assistant("m", thought), assistant("m", text), assistant("n", text))
    assert found.usage == Usage(10, 0, cache_read=8, output_unknown=True)
    assert [event.type for event in found.events] == ["model_step", "message", "message"]


def test_claude_reads_results_in_blocks_and_failed_sessions():
    block = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "Exit code 2\nx"}], "is_error": True}  # fmt: skip
    failed = {"type": "result", "subtype": "error_max_turns", "is_error": True}
    found = read("claude_code", {"type": "user", "message": {"content": [block]}}, failed)
    assert (found.events[0].exit_code, found.events[0].success) == (2, False)
    assert found.events[1] == Event("error", text="error_max_turns")


@pytest.mark.parametrize(
    ("ended", "code"), [({"exit": None}, 1), ({"exit": 0}, 0), ({"exit": 3}, 3), ({}, 0)]
)
def test_a_command_that_opencode_ended_has_failed(ended, code):
    state = {"status": "completed", "input": {"command": "./taskmgr create"}, "metadata": ended}
    part = {"callID": "1", "tool": "bash", "state": state}
    [call] = pair_calls(read("opencode", {"type": "tool_use", "part": part}).events)
    assert call.exit_code == code


def test_opencode_reports_failed_tools_errors_and_costs():
    state = {"status": "error", "error": "no such file", "input": {"path": "a"}}
    found = read(
        "opencode",
        {"type": "tool_use", "part": {"tool": "read", "callID": "c", "state": state}},
        {"type": "error", "error": {"name": "Api", "data": {"message": "quota"}}},
        {"type": "step_finish", "part": {"tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4}}, "cost": 0.5}},
    )  # fmt: skip
    assert found.events == (
        Event("tool_call", "c", "read", input={"path": "a"}, usage=Usage(5, 5, cache_read=4, reasoning=3)),
        Event("tool_result", "c", "read", output="no such file", success=False),
        Event("error", text="quota"),
    )
    assert (found.usage, found.cost_usd) == (Usage(5, 5, cache_read=4, reasoning=3), 0.5)
    assert Counter(event.type for event in found.events)["raw"] == 0


@pytest.mark.parametrize(
    ("state", "why", "success"),
    [
        ({"error": "The user rejected permission to use this specific tool call."}, "rejected", None),
        ({"error": "The user has specified a rule which prevents you from using this specific tool call. Here"}, "denied", None),
        ({"error": "Tool execution aborted"}, "cancelled", None),
        ({"error": "Tool execution aborted", "metadata": {"output": "a"}}, "", None),
        ({"error": "The bash tool was called with invalid arguments: command"}, "invalid", None),
        ({"error": "no such host", "metadata": {"output": ""}}, "", False),
        ({"error": "A plugin's own words."}, "denied", None),
        ({"status": "completed", "output": "x\n\nUser aborted the command", "metadata": {"exit": None}}, "", None),
    ],
)  # fmt: skip
def test_what_opencode_refused_never_ran(state, why, success):
    given = {"status": "error", "input": {"command": "./taskmgr list"}, **state}
    part = {"callID": "1", "tool": "bash", "state": given}
    result = read("opencode", {"type": "tool_use", "part": part}).events[1]
    assert (result.not_run, result.success) == (why, success)


@pytest.mark.parametrize(
    ("fields", "why", "code"),
    [
        ({"status": "declined", "exit_code": -1}, "denied", None),
        ({"status": "failed", "exit_code": -1, "aggregated_output": "exec command rejected by user"}, "rejected", None),
        ({"status": "failed", "exit_code": 1, "aggregated_output": "exec command rejected by user"}, "", 1),
    ],
)  # fmt: skip
def test_what_codex_refused_never_ran(fields, why, code):
    result = read("codex", item(type="command_execution", command="./taskmgr list", **fields)).events[1]
    assert (result.not_run, result.exit_code) == (why, code)


def background(*lines):
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "./taskmgr serve", "run_in_background": True}}  # fmt: skip
    text = "Command running in background with ID: b1. Output is being written to: /tmp/b1.output."
    result = {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": False}
    stream = read(
        "claude_code", assistant("m", use), {"type": "user", "message": {"content": [result]}}, *lines
    )
    return pair_calls(stream.events)[0].exit_code


def system(subtype, **fields):
    return {"type": "system", "subtype": subtype, "task_id": "b1", **fields}


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([], None),
        ([system("task_updated", patch={"status": "running"})], None),
        ([system("task_updated", patch={"status": "completed"})], 0),
        ([system("task_updated", patch={"status": "failed"})], 1),
        ([system("task_notification", status="failed", summary='Background command "x" failed with exit code 3')], 3),
        ([system("task_notification", status="completed", summary='"x" completed (exit code 0)'),
          system("task_updated", patch={"status": "completed"})], 0),
        ([system("task_updated", patch={"status": "killed"})], None),
        ([{**system("task_updated", patch={"status": "failed"}), "task_id": "b2"}], None),
    ],
)  # fmt: skip
def test_a_background_command_of_claude_ends_as_its_stream_says(lines, code):
    assert background(*lines) == code


def test_a_later_read_says_how_a_background_command_ended():
    use = {"type": "tool_use", "id": "u", "name": "TaskOutput", "input": {"task_id": "b1"}}
    text = "<task_id>b1</task_id>\n<status>failed</status>\n<exit_code>4</exit_code>\n<output>\nno\n</output>"
    result = {"type": "tool_result", "tool_use_id": "u", "content": text}
    assert background(assistant("n", use), {"type": "user", "message": {"content": [result]}}) == 4


def test_claude_lists_what_was_not_permitted():
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "./taskmgr list"}}
    denied = [{"tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}]
    result = {"type": "tool_result", "tool_use_id": "t", "content": "In words of tomorrow.", "is_error": True}
    end = {"type": "result", "subtype": "success", "permission_denials": denied}
    stream = read("claude_code", assistant("m", use), {"type": "user", "message": {"content": [result]}}, end)
    assert stream.events[1].not_run == "denied"
    assert read("claude_code", assistant("m", use), end).events[0].not_run == "denied"


def test_claudes_tokens_are_those_of_all_models():
    used = {"inputTokens": 5, "outputTokens": 7, "cacheReadInputTokens": 1, "cacheCreationInputTokens": 2}
    end = {
        "type": "result",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "modelUsage": {"a": used, "b": used},
    }
    assert read("claude_code", assistant("m", {"type": "text", "text": "hi"}), end).usage == Usage(
        16, 14, cache_read=2, cache_write=4
    )


def test_sub_agents_that_codex_does_not_show_are_counted():
    shell = item(type="command_execution", command="./taskmgr list", exit_code=0, status="completed")
    spawned = {"type": "collab_tool_call", "tool": "spawn_agent", "status": "completed"}
    first = {"type": "item.completed", "item": {**spawned, "id": "a", "receiver_thread_ids": ["t1"]}}
    wait = {"type": "item.completed", "item": {"type": "collab_tool_call", "id": "b", "tool": "wait", "receiver_thread_ids": ["t1"]}}  # fmt: skip
    found = read("codex", shell, first, wait)
    assert found.unseen_agents == 1 and "1 sub-agent session not seen" in found.problems[0]
    counted = analyse(found, Tool(binary="taskmgr"), completed=True)
    assert (counted.known, counted.error_rate, counted.first_try_success_rate) == (1, None, None)


def test_sub_agents_that_opencode_does_not_show_are_counted():
    part = {"callID": "1", "tool": "task", "state": {"status": "completed", "input": {}, "output": "done"}}
    assert read("opencode", {"type": "tool_use", "part": part}).unseen_agents == 1
