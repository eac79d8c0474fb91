"""What the real agents print for calls that never ran, ran on or were cut off, and for sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluators.model import Event, Transcript, Usage
from evaluators.tool_use.calls import pair_calls
from evaluators.transcripts import parse
from evaluators.transcripts.chat import as_lines
from evaluators.transcripts.endings import with_cut_ends
from evaluators.transcripts.sessions import IMPORTERS, parse_session_file
from evaluators.transcripts.sessions.sub_agents import MAIN, with_sub_agents
from tests.session_files import lines_of

FILES = Path(__file__).parents[2] / "files"


def stream(name: str) -> Transcript:
    return parse(name.rsplit("_", 1)[0] if name[:6] != "claude" else "claude_code", raw(name))


def raw(name: str) -> bytes:
    return (FILES / "streams" / f"{name}.jsonl").read_bytes()


def ends(transcript: Transcript) -> list[tuple[str, int | None]]:
    return [(call.not_run, call.exit_code) for call in pair_calls(transcript.events)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # By a rule, by a hook, without its command, by Claude's own rule on sleeping, an unknown tool.
        ("claude_code_refused", ["denied", "denied", "invalid", "denied", "invalid", ""]),
        ("claude_code_not_permitted", ["denied", "denied"]),
        ("opencode_denied", ["denied", ""]),
        ("opencode_hook", ["denied", ""]),
        ("opencode_rejected", ["rejected"]),
    ],
)
def test_what_an_agent_refused_never_ran(name: str, expected: list[str]) -> None:
    found = ends(stream(name))
    assert [why for why, _ in found] == expected
    assert [code for why, code in found if why] == [None] * sum(map(bool, expected))
    assert all(code == 1 for why, code in found if not why)


def test_a_session_file_says_what_was_refused() -> None:
    with (FILES / "sessions/claude-code-refused/session.jsonl").open("rb") as file:
        (session,) = parse_session_file(file, IMPORTERS)[1]
    expected = [("denied", None), ("denied", None), ("denied", None), ("", 1)]
    assert ends(session.transcript) == expected


def claude_call(output: str, **line: Any) -> bytes:
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "mytool list"}}
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": output}
    return lines_of([
        {"type": "assistant", "sessionId": "s", "message": {"id": "m", "role": "assistant", "content": [use]}},
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": [result]}, **line},
    ])  # fmt: skip


def meta(kind: str, source: str = "user_reject") -> dict[str, Any]:
    decided = {"decision": "reject", "source": source}
    return {"tool_result_meta": [{"id": "t", "non_execution_kind": kind, "permission_decision": decided}]}


@pytest.mark.parametrize(
    ("output", "line", "expected"),
    [
        ("Nein.", meta("user-rejected"), "rejected"),
        ("Nein.", meta("user-rejected", "config"), "denied"),
        ("Nein.", meta("permission-rule"), "denied"),
        ("Nein.", meta("automode-blocked"), "denied"),
        ("Nein.", meta("cancelled"), "cancelled"),
        ("[Tool call skipped: the turn paused before this call ran.]", {}, "cancelled"),
        ("Permission for this tool use was denied. It requires approval.", {}, "denied"),
        ("<tool_use_error>File does not exist.</tool_use_error>", {}, "invalid"),
    ],
)
def test_claude_code_names_why_a_call_did_not_run(output: str, line: dict[str, Any], expected: str) -> None:
    assert ends(parse("claude_code", claude_call(output, **line))) == [(expected, None)]


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("user-rejected", "user_reject", "rejected"),
        ("user-rejected", "config", "denied"),
        ("cancelled", "", "cancelled"),
    ],
)
def test_a_session_file_names_why_a_call_did_not_run(
    kind: str, source: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(claude_call("Nein.", toolDenialKind=kind, permissionDecision={"source": source}))
    with file.open("rb") as opened:
        (session,) = parse_session_file(opened, IMPORTERS)[1]
    assert ends(session.transcript) == [(expected, None)]


@pytest.mark.parametrize(
    ("output", "event", "version", "expected"),
    [
        ("Format the code first.", "PreToolUse", "2.1.39", ("denied", None)),
        ("Exit code 1\nFormat the code first.", "PreToolUse", "2.1.39", ("", 1)),
        ("Format the code first.", "PostToolUse", "2.1.39", ("", 1)),
        ("Format the code first.", "PreToolUse", "2.0.5", ("", 1)),
    ],
)
def test_a_hook_denies_a_command_in_its_own_words(
    output: str, event: str, version: str, expected: tuple[str, int | None], tmp_path: Path
) -> None:
    call, result = claude_call(output, version=version).splitlines()
    progress = {
        "type": "hook_progress",
        "hookEvent": event,
        "hookName": f"{event}:Bash",
        "command": "check.sh",
    }
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines_of([json.loads(call), {"type": "progress", "data": progress, "toolUseID": "t"}]))
    with file.open("ab") as opened:
        opened.write(result)
    with file.open("rb") as opened:
        (session,) = parse_session_file(opened, IMPORTERS)[1]
    assert ends(session.transcript) == [expected]


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Nein.", meta("interrupted")),
        ("[Tool call interrupted: the session ended before this call's result was recorded.]", {}),
        ("[Request interrupted by user for tool use]", {}),
    ],
)
def test_a_call_that_was_interrupted_has_an_unknown_end(output: str, line: dict[str, Any]) -> None:
    assert ends(parse("claude_code", claude_call(output, **line))) == [("", None)]


@pytest.mark.parametrize(
    "output", ["Exit code 3\n[Tool call skipped: no]", "error: <tool_use_error>Blocked: no", "Cancelled: x"]
)
def test_a_tools_own_failure_that_looks_like_a_refusal_stays_one(output: str) -> None:
    (found,) = ends(parse("claude_code", claude_call(output)))
    assert found in [("", 3), ("", 1)]


def test_commands_that_claude_moves_to_the_background_end_as_it_says() -> None:
    assert ends(stream("claude_code_background")) == [("", 1), ("", 0)]


def test_a_codex_process_that_still_runs_has_an_unknown_end() -> None:
    assert ends(stream("codex_background")) == [("", 1), ("", None), ("", 0)]


@pytest.mark.parametrize("agent", ["claude_code", "codex", "opencode"])
def test_a_command_that_evalhub_cut_has_an_unknown_end(agent: str) -> None:
    found = parse(agent, raw(f"{agent}_cut"))
    export = FILES / "streams/opencode_cut_export.json"
    files = {MAIN: export.read_bytes()} if agent == "opencode" else {}
    cut = with_cut_ends(with_sub_agents(found, agent, files))
    assert ends(cut) == [("", 1), ("", None)]


def test_a_failure_before_the_cut_is_one() -> None:
    failed = parse("claude_code", raw("claude_code_cut"))
    more = Event("message", role="assistant", text="It failed.")
    answered = Transcript(events=(*failed.events, more))
    assert ends(with_cut_ends(answered)) == [("", 1), ("", 137)]


def test_a_running_call_keeps_nothing_of_what_the_stream_has() -> None:
    export = json.loads((FILES / "streams/opencode_cut_export.json").read_text())
    export["messages"][-1]["info"]["tokens"]["input"] = 30
    found = with_sub_agents(stream("opencode_cut"), "opencode", {MAIN: json.dumps(export).encode()})
    assert len(pair_calls(found.events)) == 2
    assert found.usage == Usage(130, 20)


def test_what_claudes_sub_agents_do_has_their_id() -> None:
    found = stream("claude_code_sub_agent")
    commands = [(each.command, "agent" in each.metadata) for each in found.events if each.command]
    assert commands == [("./taskmgr list", False), ("./taskmgr list", False), ("./taskmgr creat", True)]
    texts = [(each.role, "agent" in each.metadata) for each in found.events if each.text == "made"]
    assert texts == [("assistant", True)]
    assert (found.answer, "made" in found.text) == ("done", False)


def test_a_sidechain_in_its_sessions_file_has_its_agent(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in claude_call("Exit code 2\nno").splitlines()]
    own = [{**line, "isSidechain": False} for line in lines]
    other = [json.loads(json.dumps({**line, "isSidechain": True}).replace('"t"', '"u"')) for line in lines]
    file = tmp_path / "s.jsonl"
    file.write_bytes(lines_of([*own, *other]))
    with file.open("rb") as opened:
        (session,) = parse_session_file(opened, IMPORTERS)[1]
    found = [each.metadata.get("agent") for each in session.transcript.events]
    assert found == [None, None, "sidechain", "sidechain"]


@pytest.mark.parametrize("reason", ["rejected", "denied", "cancelled", "invalid", "other"])
@pytest.mark.parametrize(
    ("parser", "lines"),
    [
        ("events", [{"event": "tool_call", "id": "1", "tool": "shell", "command": "mytool list"},
                    {"event": "tool_result", "id": "1", "exit_code": 1, "success": False}]),
        ("events", [{"type": "tool_call", "id": "1", "name": "shell", "command": "mytool list"},
                    {"type": "tool_result", "id": "1", "exit_code": 1, "success": False}]),
        ("trace", [{"type": "tool_call", "id": "1", "name": "shell", "input": {"command": "mytool list"}},
                   {"type": "tool_result", "id": "1", "exitCode": 1, "success": False}]),
        ("chat", [{"name": "shell", "args": {"command": "mytool list"}, "success": False}]),
    ],
)  # fmt: skip
def test_neutral_formats_may_say_why_a_call_did_not_run(
    parser: str, lines: list[dict[str, Any]], reason: str
) -> None:
    given = [*lines[:-1], {**lines[-1], "not_run": reason}]
    content = (
        json.dumps({"text": "done", "toolCalls": given}).encode() if parser == "chat" else lines_of(given)
    )
    expected = ("", 1) if reason == "other" else (reason, None)
    read = parse(parser, content)
    assert ends(read) == [expected]
    if parser == "chat":
        assert ends(parse("events", as_lines(read))) == [expected]
