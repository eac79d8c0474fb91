"""The agent's latest call, read from a part of its stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalhub.lib.limits import MOST_LINES
from evaluators.tool_use.calls import pair_calls
from evaluators.transcripts import parse
from evaluators.transcripts.latest import MOST_CALLS, CallsSoFar, LatestCalls

STREAMS = Path(__file__).parents[2] / "files" / "streams"
AGENTS = ["codex", "claude_code", "opencode"]


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in events)


def latest_call(parser: str, raw: bytes) -> str:
    return CallsSoFar(parser).read(raw).last


def call(command: str, **changes: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": "bash", "command": command, **changes}


@pytest.mark.parametrize("agent", AGENTS)
def test_it_is_the_last_call_of_a_recorded_session_at_any_moment(agent: str) -> None:
    raw = (STREAMS / f"{agent}.jsonl").read_bytes()
    assert latest_call(agent, raw) == [each.command for each in parse(agent, raw).events if each.command][-1]
    for end in [place + 1 for place, byte in enumerate(raw) if byte == ord("\n")]:
        calls = [each.command for each in parse(agent, raw[:end]).events if each.command]
        assert latest_call(agent, raw[:end]) == (calls[-1] if calls else "")


def test_a_call_that_is_no_command_is_its_tool_with_what_it_was_given() -> None:
    stream = lines(call("ls"), {"type": "tool_call", "name": "Read", "input": {"path": "a.txt"}})
    assert latest_call("events", stream) == 'Read {"path":"a.txt"}'
    assert latest_call("events", lines({"type": "tool_call", "name": "Stop"})) == "Stop"
    assert latest_call("events", lines({"type": "tool_call"})) == "tool"


def test_of_several_calls_in_one_message_it_is_the_last() -> None:
    blocks = [{"type": "tool_use", "name": "Bash", "input": {"command": each}} for each in ("ls", "pwd")]
    assert latest_call("claude_code", lines({"type": "assistant", "message": {"content": blocks}})) == "pwd"


def test_what_follows_a_call_does_not_hide_it() -> None:
    stream = lines(call("ls"), {"type": "tool_result", "output": "a"}, {"type": "message", "text": "I see."})
    assert latest_call("events", stream) == "ls"


@pytest.mark.parametrize(
    "broken",
    [
        b'ommand":"rm"}\n',
        b"\n\n",
        b"\xff\xfe\n",
        b"[1]\nnull\n7\n",
        b"[" * 20_000 + b"\n",
        lines({"type": "tool_call", "name": [], "command": {}}),
    ],
    ids=["without its beginning", "empty", "no text", "no objects", "deep", "other types"],
)
@pytest.mark.parametrize("parser", ["events", *AGENTS])
def test_lines_that_cannot_be_read_are_passed_over(parser: str, broken: bytes) -> None:
    before = {
        "events": call("ls"),
        "codex": {"type": "item.started", "item": {"type": "command_execution", "command": "ls"}},
        "claude_code": {
            "type": "assistant",
            "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]},
        },
        "opencode": {"type": "tool_use", "part": {"tool": "bash", "state": {"input": {"command": "ls"}}}},
    }
    assert latest_call(parser, lines(before[parser]) + broken) in ("ls", "tool")


@pytest.mark.parametrize("parser", ["plain_text", "trace", "chat", "otel", "unheard of"])
def test_a_format_without_events_in_lines_has_no_latest_call(parser: str) -> None:
    assert latest_call(parser, lines(call("ls"))) == ""


def test_only_the_end_of_a_flood_is_read() -> None:
    other = lines({"type": "message", "text": "Well."})
    assert latest_call("events", lines(call("ls")) + other * (MOST_LINES - 2)) == "ls"
    assert latest_call("events", lines(call("ls")) + other * MOST_LINES) == ""


def test_an_empty_text_has_no_tokens() -> None:
    assert CallsSoFar("events").read(b"") == LatestCalls("", None)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_recorded_sessions_calls_are_counted_in_any_parts(agent: str) -> None:
    raw = (STREAMS / f"{agent}.jsonl").read_bytes()
    for size in (1, 2, 7, 1000):
        each = raw.splitlines(keepends=True)
        calls = CallsSoFar(agent)
        for at in range(0, len(each), size):
            latest = calls.read(b"".join(each[at : at + size]))
            so_far = parse(agent, b"".join(each[: at + size])).events
            assert latest.count == sum(event.type == "tool_call" for event in so_far)
        assert latest.count


def test_other_events_report_no_calls() -> None:
    assert CallsSoFar("codex").read(lines({"type": "thread.started"})) == LatestCalls("", 0)


def test_the_last_call_stays_while_nothing_is_reported() -> None:
    calls = CallsSoFar("events")
    calls.read(lines(call("ls"), call("ls"), call("pwd")))
    assert calls.read(b"") == LatestCalls("pwd", 3)


def test_a_call_that_is_reported_again_is_counted_once() -> None:
    calls = CallsSoFar("events")
    calls.read(lines(call("ls", id="1"), call("ls", id="2")))
    assert calls.read(lines(call("ls", id="1"))).count == 2


@pytest.mark.parametrize(
    ("flood", "missed"),
    [(b"", True), (lines({"type": "message", "text": "Well."}) * (MOST_LINES + 1), False)],
    ids=["missed", "passed over"],
)
def test_once_something_was_not_seen_the_calls_are_not_counted(flood: bytes, missed: bool) -> None:
    calls = CallsSoFar("events")
    assert calls.read(lines(call("ls"))).count == 1
    calls.read(flood, missed=missed)
    assert calls.read(lines(call("pwd"))) == LatestCalls("pwd", None)


def test_more_calls_than_are_remembered_are_not_counted() -> None:
    calls = CallsSoFar("events")
    for n in range(0, MOST_CALLS, MOST_LINES):
        latest = calls.read(lines(*(call("ls", id=str(each)) for each in range(n, n + MOST_LINES))))
    assert latest.count == MOST_CALLS
    assert calls.read(lines(call("ls", id="one more"))).count is None


@pytest.mark.parametrize("agent", AGENTS)
def test_the_last_calls_exit_code_matches_at_any_moment(agent: str) -> None:
    raw = (STREAMS / f"{agent}.jsonl").read_bytes()
    seen = set()
    watched, so_far = CallsSoFar(agent), b""
    for line in raw.splitlines(keepends=True):
        so_far += line
        made = pair_calls(parse(agent, so_far).events)
        expected = made[-1].exit_code if made else None
        assert watched.read(line).exit_code == expected
        seen.add(expected)
    assert {0, None} < seen


def result(code: int, **changes: Any) -> dict[str, Any]:
    return {"type": "tool_result", "exit_code": code, **changes}


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([call("ls"), result(2)], 2),
        ([call("ls"), result(2), call("pwd")], None),
        ([call("ls"), call("pwd"), result(2)], None),
        ([call("ls"), call("pwd"), result(2), result(0)], 0),
        ([call("ls", id="1"), call("pwd", id="2"), result(2, id="1")], None),
        ([call("ls", id="1"), call("pwd", id="2"), result(0, id="2"), result(2, id="1")], 0),
        ([call("ls", id="1"), result(2)], None),
        ([call("ls"), {"type": "tool_result", "success": False}], 1),
        ([result(2)], None),
    ],
    ids=[
        "of the only call",
        "running",
        "of the first",
        "of both",
        "of another",
        "in any order",
        "whose?",
        "no code",
        "no call",
    ],
)
def test_an_exit_code_is_reported_for_the_last_call_only(
    events: list[dict[str, Any]], code: int | None
) -> None:
    assert CallsSoFar("events").read(lines(*events)).exit_code == code


def test_a_result_without_id_is_ignored_after_a_gap() -> None:
    latest = CallsSoFar("events").read(lines(call("ls"), result(2)), missed=True)
    assert (latest.last, latest.exit_code) == ("ls", None)
