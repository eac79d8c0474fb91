"""When an agent's stream is over although its program, or what it left in the background, still runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.recorded_commands import RecordedCall, read_call_record
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from runs.sandbox.process import run_process
from runs.sandbox.recording.record import RecordedTool, ToolRecord
from runs.targets.agents.session_end import LINGER_SECONDS, ClosingEvent

FILES = Path(__file__).parents[3] / "files"
STREAMS = {
    "claude_code": FILES / "streams/claude_code.jsonl",
    "codex": FILES / "streams/codex.jsonl",
    "opencode": FILES / "streams/opencode.jsonl",
    "gemini_cli": FILES / "agent_programs/gemini_cli.stream.jsonl",
    "qwen_code": FILES / "agent_programs/qwen_code.stream.jsonl",
    "copilot_cli": FILES / "agent_programs/copilot_cli.stream.jsonl",
}
CASE = FILES / "cases/64"


class Clock:
    """A clock that stands still."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def record_for(folder: Path) -> ToolRecord:
    return ToolRecord(RecordedTool("kv"), folder, str(folder), ())


@pytest.mark.parametrize("kind", STREAMS)
def test_a_session_lingers_some_seconds_after_its_closing_event(kind: str) -> None:
    clock = Clock()
    closing = ClosingEvent(kind, clock=clock)
    *before, last = STREAMS[kind].read_bytes().splitlines(keepends=True)
    closing.take("stdout", b"".join(before))
    clock.now += 2 * LINGER_SECONDS
    assert not closing.lingers()
    closing.take("stdout", last)
    assert not closing.lingers()
    clock.now += LINGER_SECONDS
    assert closing.lingers()
    closing.take("stdout", b"".join(before))
    assert not closing.lingers()


def test_the_type_need_not_come_first() -> None:
    """Claude Code 2.1.332 writes it last."""
    clock = Clock()
    closing = ClosingEvent("claude_code", clock=clock)
    closing.take("stdout", b'{"duration_api_ms":112,"stop_reason":"end_turn","type":"result"}\n')
    clock.now += LINGER_SECONDS
    assert closing.lingers()


@pytest.mark.parametrize(
    ("started", "lingers"),
    [
        ({"task_type": "local_bash"}, True),
        ({"task_type": "local_agent"}, False),
        ({"data": {"task_id": "t", "subagent_type": "general-purpose"}}, False),
    ],
)
def test_a_sub_agent_in_the_background_keeps_the_session(started: dict[str, object], lingers: bool) -> None:
    clock = Clock()
    closing = ClosingEvent("claude_code", clock=clock)
    lines = [{"type": "system", "subtype": "task_started", "task_id": "t", **started}, {"type": "result"}]
    closing.take("stdout", b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    clock.now += LINGER_SECONDS
    assert closing.lingers() is lingers
    ended = {"type": "system", "subtype": "task_updated", "task_id": "t", "patch": {"status": "completed"}}
    closing.take("stdout", json.dumps(ended).encode() + b"\n")
    assert closing.lingers()


def test_a_server_that_the_agents_exit_ends_is_unknown(tmp_path: Path) -> None:
    """Case 64: the call ended by a signal after the stream's last result."""
    clock, record = Clock(), record_for(tmp_path)
    lines = (CASE / "tool-calls.short.jsonl").read_text().splitlines()
    calls = [json.loads(line) | {"parents": [{"pid": 1}]} for line in lines]
    closing = ClosingEvent("claude_code", record, clock)
    clock.now = max(call["start"] + call["seconds"] for call in calls if call["exit"] == 0) + 0.5
    closing.take("stdout", (CASE / "claude.jsonl").read_bytes())
    record.read("\n".join([*map(json.dumps, calls), '{"lost": 0}']).encode())
    found = read_call_record(record.content or b"")
    assert [(call.n, call.exit, call.signal) for call in found] == [
        (1, 0, None),
        (2, None, None),
        (3, 0, None),
    ]
    read = parse("claude_code", (CASE / "claude.jsonl").read_bytes())
    counted = analyse(read, Tool(binary="kv"), completed=True, record=found)
    metrics = (counted.total_commands, counted.error_count, counted.unknown_exit)
    assert (metrics, counted.first_try_success_rate) == ((3, 0, 1), 1.0)


@pytest.mark.parametrize(
    ("after", "end", "expected"),
    [
        # seconds after the last result of a call; the closing event comes at 2
        (-1.0, {"exit": None, "signal": 9}, (None, 9)),
        (1.0, {"exit": None, "signal": 9}, (None, None)),
        (1.0, {"exit": 143, "signal": None}, (None, None)),
        (1.0, {"exit": 1, "signal": None}, (1, None)),
        (3.0, {"exit": 1, "signal": None}, (None, None)),
        (3.0, {"exit": 0, "signal": None}, (None, None)),
    ],
)
def test_which_ends_are_the_agents_exit(
    tmp_path: Path, after: float, end: dict[str, int | None], expected: tuple[int | None, int | None]
) -> None:
    record = record_for(tmp_path)
    record.result_at, record.closed_at = 100.0, 102.0
    call = {"n": 1, "how": "file", "path": "kv", "argv": ["kv"], "start": 90.0, "parents": [{"pid": 1}]}
    record.read(json.dumps(call | {"seconds": 10.0 + after} | end).encode() + b'\n{"lost": 0}')
    found: RecordedCall = read_call_record(record.content or b"")[0]
    assert (found.exit, found.signal) == expected


def test_a_process_that_lingers_is_ended_without_an_error(tmp_path: Path) -> None:
    printed: list[bytes] = []

    class Sink:
        def take(self, stream: str, chunk: bytes) -> None:
            printed.append(chunk)

    result = run_process(
        [sys.executable, "-uc", "import time; print('done'); time.sleep(60)"],
        cwd=tmp_path,
        env={},
        timeout_seconds=60,
        sinks=[Sink()],
        lingers=lambda: bool(printed),
    )
    assert (result.lingered, result.timed_out, result.cancelled, result.error) == (True, False, False, "")
    assert result.stdout == b"done\n"
    assert result.seconds < 30
