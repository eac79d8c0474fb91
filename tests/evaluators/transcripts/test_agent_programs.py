"""What other agent programs wrote, live and as a session, against counts by hand (tests/files/agent_programs)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from evaluators.model import Transcript, Usage
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import UnreadableTranscript, parse
from evaluators.transcripts.endings import SessionEnd, ending_of
from evaluators.transcripts.gemini_cli import stated_code
from evaluators.transcripts.inspect_log import read_inspect_archive
from evaluators.transcripts.sessions import IMPORTERS, UnreadableSession, parse_session_file
from evaluators.transcripts.sessions.session import Session

FILES = Path(__file__).parents[2] / "files/agent_programs"
INDEX: dict[str, dict[str, Any]] = json.loads((FILES / "index.json").read_text())["files"]
ANSWER = "Created the task and listed it."
STREAMS = {name: each["reader"] for name, each in INDEX.items() if ".stream." in name}


def session_of(content: bytes, agent: str) -> Session:
    found, sessions, problems = parse_session_file(io.BytesIO(content), IMPORTERS)
    (session,) = sessions
    assert (found, problems) == (agent, [])
    return session


def transcripts(name: str) -> list[Transcript]:
    """What the readers of a sample say of it: live, as a session, or both."""
    content, about = (FILES / name).read_bytes(), INDEX[name]
    live = [parse(about["reader"], content)] if "reader" in about else []
    return live + ([session_of(content, about["agent"]).transcript] if "agent" in about else [])


def read(reader: str, *lines: dict[str, Any]) -> Transcript:
    return parse(reader, "\n".join(map(json.dumps, lines)).encode())


def test_every_sample_is_in_the_index() -> None:
    assert {path.name for path in FILES.iterdir()} - {"index.json"} == set(INDEX)


@pytest.mark.parametrize("name", INDEX)
def test_commands_and_tokens_are_those_counted_by_hand(name: str) -> None:
    expected = INDEX[name]
    for found in transcripts(name):
        counted = analyse(found, Tool(binary="taskmgr"), completed=True)
        # A failure that only an error message tells is a guess.
        ends = [None if each.end == "estimated" else each.exit_code for each in counted.commands]
        assert ends == expected["ends"]
        assert (counted.help_seeking, counted.not_run) == (expected["help"], expected["not_run"])
        used = found.usage
        tokens = (used.input, used.output, used.cache_read) if used else (None, None, None)
        assert tokens == (expected["input"], expected["output"], expected["cache_read"])
        assert (found.problems, found.unknown_events) == ((), 0)


@pytest.mark.parametrize(
    "name", [name for name in INDEX if not name.startswith(("mini", "atif.", "atif_mini"))]
)
def test_the_answer_is_what_the_agent_said_last(name: str) -> None:
    assert [found.answer for found in transcripts(name)] == [ANSWER] * len(transcripts(name))


@pytest.mark.parametrize(
    ("name", "id", "model"),
    [
        ("gemini_cli.session.jsonl", "dd4bb3c8-3ca3-4c44-814b-3d637dce36d4", "gemini-2.5-pro"),
        ("qwen_code.session.jsonl", "a08cd6ee-ba0d-4aa9-8a1a-0a764855bd5d", "scripted"),
        ("copilot_cli.session.jsonl", "a4f0b387-f6cc-409b-ac95-9280014c9981", "gpt-5"),
        ("mini_swe_agent.json", "", "openai/scripted"),
    ],
)
def test_a_session_has_its_id_model_and_times(name: str, id: str, model: str) -> None:
    found = session_of((FILES / name).read_bytes(), INDEX[name]["agent"])
    assert (found.id, found.model) == (id, model)
    assert found.started.startswith("2026-11-28T06:5") and found.started < found.finished


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("other", ["codex", "claude_code", "opencode", *STREAMS.values()])
def test_the_stream_of_another_program_is_unreadable(name: str, other: str) -> None:
    if other == STREAMS[name] or (name.startswith("qwen") and other == "claude_code"):
        assert parse(other, (FILES / name).read_bytes()).unknown_events == 0
        return
    with pytest.raises(UnreadableTranscript):
        parse(other, (FILES / name).read_bytes())


@pytest.mark.parametrize("reader", [*STREAMS.values(), "mini_swe_agent", "atif", "inspect", "aider"])
@pytest.mark.parametrize("raw", [b"", b"no stream\n", b"[1]", b"3", b"{}"], ids=str)
def test_what_is_no_stream_is_refused(reader: str, raw: bytes) -> None:
    with pytest.raises(UnreadableTranscript):
        parse(reader, raw)


@pytest.mark.parametrize("name", [name for name in INDEX if not name.endswith((".eval", ".md"))])
@pytest.mark.parametrize("odd", [None, 3, "x", [3], {}], ids=str)
def test_no_shape_of_a_value_breaks_a_reader(name: str, odd: Any) -> None:
    """Every value of a sample is replaced, one kind of key at a time."""
    content, about = (FILES / name).read_text(), INDEX[name]
    whole = name.endswith(".json")
    values = [json.loads(content)] if whole else [json.loads(line) for line in content.splitlines()]
    keys = {key for value in values for key in _keys(value)}
    for key in sorted(keys - {"type", "id"}):
        raw = "\n".join(json.dumps(_replaced(value, key, odd)) for value in values).encode()
        if "reader" in about:
            _read_or_refuse(lambda raw=raw: parse(about["reader"], raw), key)
        if "agent" in about:
            _read_or_refuse(lambda raw=raw: list(parse_session_file(io.BytesIO(raw), IMPORTERS)[1]), key)


def _read_or_refuse(read: Callable[[], object], key: str) -> None:
    with suppress(UnreadableTranscript, UnreadableSession):
        assert read() is not None, key


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()


def _replaced(value: Any, key: str, by: Any) -> Any:
    if isinstance(value, dict):
        return {name: by if name == key else _replaced(each, key, by) for name, each in value.items()}
    return [_replaced(each, key, by) for each in value] if isinstance(value, list) else value


# Gemini CLI.


def test_pieces_of_an_answer_are_one_message() -> None:
    say = {"type": "message", "role": "assistant", "delta": True}
    found = read("gemini_cli", {"type": "init"}, {**say, "content": "All "}, {**say, "content": "done."})
    assert [event.text for event in found.events] == ["All done."]
    assert found.answer == "All done."


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ("Output: a\nProcess Group PGID: 7", 0),
        ("<untrusted_context>\nOutput: a\nExit Code: 2\nProcess Group PGID: 7\n</untrusted_context>", 2),
        ("Output: a\nSignal: 9\nProcess Group PGID: 7", None),
        ("Output: Exit Code: 4\nProcess Group PGID: 1\n", 0),
        ("Command moved to background (PID: 7). Output hidden.", None),
        ("Command: t\nDirectory: (root)\nOutput: a\nError: (none)\nExit Code: 3\nSignal: 0\nProcess Group PGID: 7", 3),
        ("Command: t\nOutput: a\nExit Code: (none)\nSignal: 9", None),
        ("a", None),
        (None, None),
    ],
)  # fmt: skip
def test_an_exit_code_is_only_what_the_program_told(told: str | None, code: int | None) -> None:
    assert stated_code(told) == code


def test_the_last_lines_of_a_command_are_not_taken_for_the_programs() -> None:
    shown = "a\nExit Code: 9\nProcess Group PGID: 1"
    assert stated_code(f"Output: {shown}\nProcess Group PGID: 7", shown) == 0


def gemini_call(**call: Any) -> bytes:
    begin = {"sessionId": "s", "projectHash": "p", "startTime": "2026-11-28T06:00:00Z"}
    given = {"id": "c", "name": "run_shell_command", "args": {"command": "./taskmgr list"}, **call}
    return "\n".join(map(json.dumps, (begin, {"id": "m", "type": "gemini", "toolCalls": [given]}))).encode()


@pytest.mark.parametrize(
    ("status", "response", "why", "success"),
    [
        ("cancelled", {"error": "User denied execution."}, "rejected", None),
        ("cancelled", {"error": "Operation cancelled."}, "cancelled", None),
        ("cancelled", {"output": "Command was cancelled by user before it could complete."}, "", None),
        ("error", {"error": 'Tool execution for "Shell" denied by policy.'}, "denied", None),
        ("error", {"error": "no such folder"}, "", False),
        ("success", {"output": "Output: a"}, "", None),
    ],
)
def test_what_gemini_refused_never_ran(status: str, response: Any, why: str, success: bool | None) -> None:
    raw = gemini_call(status=status, result=[{"functionResponse": {"response": response}}])
    result = session_of(raw, "Gemini CLI").transcript.events[1]
    assert (result.not_run, result.success, result.exit_code) == (why, success, None)


def test_an_older_session_of_gemini_is_one_json_object() -> None:
    lines = [json.loads(line) for line in gemini_call(status="executing").splitlines()]
    raw = json.dumps({**lines[0], "messages": lines[1:]}, indent=2).encode()
    assert [call.event.command for call in pair_calls(session_of(raw, "Gemini CLI").transcript.events)] == [
        "./taskmgr list"
    ]


# mini-swe-agent.


def trajectory(*messages: dict[str, Any]) -> Transcript:
    value = {
        "info": {"mini_version": "1.17.4"},
        "messages": list(messages),
        "trajectory_format": "mini-swe-agent-1",
    }
    return parse("mini_swe_agent", json.dumps(value).encode())


def test_the_first_release_of_mini_runs_the_only_block_of_an_answer() -> None:
    found = trajectory(
        {"role": "assistant", "content": "I look.\n```bash\n./taskmgr list\n```"},
        {"role": "user", "content": "<returncode>3</returncode>\n<output>\nno\n</output>"},
        {"role": "assistant", "content": "```bash\n./taskmgr a\n```\n```bash\n./taskmgr b\n```"},
        {"role": "user", "content": "Please give exactly one action."},
    )
    assert [(call.event.command, call.exit_code) for call in pair_calls(found.events)] == [
        ("./taskmgr list", 3)
    ]


@pytest.mark.parametrize(
    ("answer", "why", "code"),
    [
        ({"role": "user", "content": "Commands not executed. The user rejected your commands"}, "rejected", None),
        ({"role": "tool", "tool_call_id": "c", "extra": {"returncode": -1, "exception_info": "timed out"}}, "", None),
        ({"role": "tool", "tool_call_id": "c", "extra": {"returncode": -15, "exception_info": ""}}, "", -15),
    ],
)  # fmt: skip
def test_what_a_result_of_mini_says(answer: dict[str, Any], why: str, code: int | None) -> None:
    actions = [{"command": "./taskmgr list", "tool_call_id": "c"}]
    found = trajectory({"role": "assistant", "content": None, "extra": {"actions": actions}}, answer)
    assert [(each.not_run, each.exit_code) for each in found.events[1:]] == [(why, code)]


def test_a_trajectory_of_swe_agent_is_refused() -> None:
    raw = json.dumps({"trajectory": [], "info": {"model_stats": {}}}).encode()
    with pytest.raises(UnreadableTranscript, match="mini-swe-agent"):
        parse("mini_swe_agent", raw)


# Qwen Code.


def test_qwens_tokens_without_a_result_are_those_of_its_messages() -> None:
    lines = (FILES / "qwen_code.stream.jsonl").read_bytes().splitlines()[:-1]
    assert parse("qwen_code", b"\n".join(lines)).usage == Usage(1100, 220, cache_read=440)


# How sessions end.

REFUSED = {
    "gemini_cli": {
        "type": "result",
        "status": "error",
        "error": {"type": "unknown", "message": '[API Error: {"error":{"code":"401","message":"No."}}]'},
    },
    "qwen_code": {"type": "result", "is_error": False, "result": "[API Error: 401 No.]"},
    "copilot_cli": {"type": "session.error", "data": {"message": "HTTP 401. No.", "statusCode": 401}},
}
"""How each tells of a request that its model's service refused."""


@pytest.mark.parametrize("name", STREAMS)
def test_a_session_ends_with_its_answer_or_with_the_services_failure(name: str) -> None:
    reader, raw = STREAMS[name], (FILES / name).read_bytes()
    assert ending_of(reader, raw) == SessionEnd(closed=True, answered=True)
    cut = b"\n".join(raw.splitlines()[:-1])
    assert ending_of(reader, cut) == SessionEnd()
    ended = ending_of(reader, cut + b"\n" + json.dumps(REFUSED[reader]).encode())
    assert ended is not None
    assert (ended.answered, ended.status, "No." in ended.failure) == (False, 401, True)


# Inspect.


def test_a_log_of_several_samples_is_several_sessions_and_no_transcript() -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    log["samples"] *= 2
    raw = json.dumps(log).encode()
    with pytest.raises(UnreadableTranscript, match="2 samples"):
        parse("inspect", raw)
    assert len(list(parse_session_file(io.BytesIO(raw), IMPORTERS)[1])) == 2


def repacked(name: str, method: int, *left_out: str) -> bytes:
    """Return a log of Inspect as another method compresses it, without some entries."""
    log, packed = read_inspect_archive((FILES / name).read_bytes()), io.BytesIO()
    (sample,) = log["samples"]  # type: ignore[misc]  # one sample
    entries = {"_journal/start.json": {name: log[name] for name in ("version", "eval", "plan")}}
    entries |= {"samples/1_epoch_1.json": sample, "header.json": {**log, "samples": None}}
    with zipfile.ZipFile(packed, "w", method) as archive:
        for path, value in entries.items():
            if path not in left_out:
                archive.writestr(path, json.dumps(value))
    return packed.getvalue()


def test_a_log_of_inspect_in_its_own_format_is_the_same_as_in_json() -> None:
    found = read_inspect_archive((FILES / "inspect.eval").read_bytes())
    log = json.loads((FILES / "inspect.json").read_text())
    assert (
        parse("inspect", (FILES / "inspect.eval").read_bytes()).events
        == transcripts("inspect.json")[0].events
    )
    assert (found["status"], found["eval"]["model"]) == (log["status"], log["eval"]["model"])  # type: ignore[index, call-overload]  # JSON


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_older_logs_of_inspect_are_deflated(method: int) -> None:
    found = parse("inspect", repacked("inspect.eval", method))
    assert found.events == transcripts("inspect.json")[0].events


def test_a_log_that_inspect_did_not_end_has_its_samples() -> None:
    raw = repacked("inspect.eval", zipfile.ZIP_DEFLATED, "header.json")
    assert read_inspect_archive(raw)["status"] == "started"
    assert (
        session_of(raw, "Inspect").model == session_of((FILES / "inspect.json").read_bytes(), "Inspect").model
    )


@pytest.mark.parametrize(
    "change",
    [lambda raw: raw[:-30], lambda raw: raw.replace(b"\x28\xb5\x2f\xfd", b"xxxx"), lambda raw: raw[:60]],
    ids=["cut", "damaged", "beginning"],
)
def test_a_damaged_log_of_inspect_is_refused(change: Callable[[bytes], bytes]) -> None:
    raw = change((FILES / "inspect.eval").read_bytes())
    with pytest.raises(UnreadableTranscript, match="can't be unpacked"):
        parse("inspect", raw)
    with pytest.raises(UnreadableSession, match="can't be unpacked"):
        session_of(raw, "Inspect")


def test_a_call_of_inspect_that_executed_twice_has_no_exit_code() -> None:
    log = json.loads((FILES / "inspect.json").read_text())
    events = log["samples"][0]["events"]
    log["samples"][0]["events"] = [each for each in events for _ in range(1 + (each["event"] == "sandbox"))]
    found = parse("inspect", json.dumps(log).encode())
    assert {event.exit_code for event in found.events if event.type == "tool_result"} == {None}
