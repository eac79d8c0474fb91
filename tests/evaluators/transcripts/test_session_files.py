"""Session files of agents, read and reduced to what is kept."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from evaluators.tool_use.tool import Tool
from evaluators.transcripts.sessions import IMPORTERS, Session, UnreadableSession, parse_session_file
from evaluators.transcripts.sessions.kept import keep_session
from tests.session_files import PROMPT, STEPS, claude, codex, lines_of, opencode, otlp

TOOL = Tool(binary="taskmgr")
LINES = [command.replace("./taskmgr", "taskmgr") for command, _, _ in STEPS[:3]]


def read(content: bytes) -> tuple[str, list[Session], list[str]]:
    agent, sessions, problems = parse_session_file(io.BytesIO(content), IMPORTERS)
    return agent, list(sessions), problems


@pytest.mark.parametrize(
    ("make", "agent", "id", "model", "tokens"),
    [
        (claude, "Claude Code", "c-1", "claude-x", 75),
        (codex, "Codex", "x-1", "gpt-x", 75),
        (partial(codex, is_old=True), "Codex", "x-1", "gpt-x", 75),
        (opencode, "opencode", "ses_1", "o-x", 75),
        (otlp, "OpenTelemetry", "o-1", "p-x", None),
        (partial(otlp, on_one_line=True), "OpenTelemetry", "o-1", "p-x", None),
    ],
)
def test_a_session_is_read(
    make: Callable[[], bytes], agent: str, id: str, model: str, tokens: int | None
) -> None:
    found, (session,), problems = read(make())
    assert (found, session.id, session.model, problems) == (agent, id, model, [])
    usage = session.transcript.usage
    assert (usage.input if usage else None) == tokens
    assert session.started.startswith("2026-11") and session.started < session.finished
    users = [event.text for event in session.transcript.events if event.role == "user"]
    assert users == ([] if agent == "OpenTelemetry" else [PROMPT])
    kept = keep_session(session, TOOL, agent=found, sha256="0" * 64, file="s.jsonl").kept
    assert [each.line for each in kept.commands[:3]] == LINES
    failed = [each.failed for each in kept.commands]
    assert failed == [False, False, True, False, False]
    assert kept.commands[2].exit_code == 2


def test_only_redacted_commands_and_errors_are_kept() -> None:
    _, (session,), _ = read(claude())
    kept = keep_session(session, TOOL, agent="Claude Code", sha256="0", file="s.jsonl").kept
    assert kept.errors == {2: "no such option: --fmt"}
    assert kept.commands[3].line.endswith("--token=[REDACTED]")
    stored = str(kept)
    for private in ("me@example", "my notes", "notes.txt", "/home/ann", "Create a task", "abcdef123456"):
        assert private not in stored


def test_a_whole_transcript_is_redacted() -> None:
    _, (session,), _ = read(claude())
    kept = keep_session(session, TOOL, agent="Claude Code", sha256="0", file="s.jsonl", whole=True).kept
    stored = str(kept)
    assert "my mail is [REDACTED_EMAIL]" in stored and "my notes" in stored
    assert "me@example" not in stored and "abcdef123456" not in stored
    assert kept.errors == {2: "no such option: --fmt"}


def test_help_that_the_agent_read_is_known() -> None:
    _, (session,), _ = read(codex())
    help = keep_session(session, TOOL, agent="Codex", sha256="0", file="s").help
    assert help[""].subcommands == ("create", "list")
    assert help["create"].names == ["--format"]


def test_a_rejected_call_is_no_failure() -> None:
    line = {"type": "user", "sessionId": "c-1", "toolUseResult": "User rejected tool use", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "t0", "is_error": True, "content": "The user doesn't want to"}]}}  # fmt: skip
    content = claude(steps=()) + lines_of(
        [{"type": "assistant", "sessionId": "c-1", "message": {"id": "m", "content": [
            {"type": "tool_use", "id": "t0", "name": "Bash", "input": {"command": "taskmgr list"}}]}}, line]
    )  # fmt: skip
    _, (session,), _ = read(content)
    kept = keep_session(session, TOOL, agent="Claude Code", sha256="0", file="s").kept
    assert (kept.commands, kept.not_run) == ((), 1)


def test_a_subagent_is_its_own_session() -> None:
    message = {"role": "user", "content": "look"}
    line = {"type": "user", "sessionId": "c-1", "agentId": "a9", "isSidechain": True, "message": message}
    assert read(lines_of([line]))[1][0].id == "c-1/a9"


def test_traces_of_one_conversation_are_one_session() -> None:
    two = otlp("o-1", on_one_line=True) + otlp("o-1", on_one_line=True).replace(b'"to-1"', b'"tother"')
    assert [(each.id, len(each.transcript.events)) for each in read(two)[1]] == [("o-1", 22)]


def test_broken_lines_are_named_and_skipped() -> None:
    first, rest = claude().split(b"\n", 1)
    _, (session,), problems = read(first + b"\n{broken\n[1]\n" + rest)
    assert len(keep_session(session, TOOL, agent="", sha256="0", file="s").kept.commands) == 5
    assert problems == ["line 2: not a JSON object; skipped.", "line 3: not a JSON object; skipped."]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The file is empty."),
        (b"hello", "line 1: not a session file of a known agent. Known: Gemini CLI, Qwen Code,"),
        (b'{"type": "summary", "leafUuid": "x"}', "No messages of a Claude Code session found."),
        (b'{"type": "session_meta", "payload": 3}', "No messages of a Codex session found."),
        (b'{"info": {"title": "an API"}, "messages": 1}', "line 1: not a session file of a known agent."),
        (b'{"info": {"name": "requests"}, "item": []}', "line 1: not a session file of a known agent."),
        (b'{"sessionId": "x", "version": 2}', "line 1: not a session file of a known agent."),
        (b'{"about": "its \\"projectHash\\": and", "projectHash": 1}', "line 1: not a session file of a known"),
        (b'{"origin": {"source": "a feed"}}', "line 1: not a session file of a known agent."),
        (b'{"type": "event_msg"}', "line 1: not a session file of a known agent."),
        (b'{"info": {},\n "messages": [', "line 2: the JSON is broken or cut off"),
        (b'{"resourceSpans": []}', "No spans of an agent found"),
        (b'{"resourceSpans": ' + b"[" * 100_000, "The JSON is nested too deeply."),
        (b'{"sessionId": "x", "type": "user", "message": {"content": [3, {"type": 4}]}}', ""),
    ],
)  # fmt: skip
def test_an_unreadable_file_is_a_sentence(content: bytes, sentence: str) -> None:
    try:
        read(content)
    except UnreadableSession as error:
        assert sentence in str(error)
    else:
        assert not sentence


def large(n: int) -> bytes:
    """Return lines that say nothing of their agent, the last of them long."""
    return lines_of(
        [*({"type": "note", "n": at} for at in range(n - 1)), {"type": "note", "text": "x" * 100_000}]
    )


@pytest.mark.parametrize("make", [claude, codex, partial(otlp, on_one_line=True)])
def test_lines_are_recognised_by_the_first_thousand(make: Callable[[], bytes]) -> None:
    agent = read(make())[0]
    assert read(large(3) + make())[0] == agent
    late = large(1_000) + make()
    with pytest.raises(UnreadableSession, match="not a session file of a known agent"):
        read(late)


def test_a_first_line_that_is_cut_off_hides_nothing() -> None:
    agent, (session,), problems = read(b'{"type": "us' + b"\n" + claude())
    assert (agent, session.id, problems) == ("Claude Code", "c-1", ["line 1: not a JSON object; skipped."])


AGENT_FILES = Path(__file__).parents[2] / "files/agent_programs"


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("file", "agent"),
    [
        ("mini_swe_agent.json", "mini-swe-agent"),
        ("atif.json", "ATIF"),
        ("inspect.json", "Inspect"),
        ("otel_vercel.json", "OpenTelemetry"),
        (None, "opencode"),
    ],
)
def test_a_document_is_recognised_by_its_keys_in_any_order(
    file: str | None, agent: str, indent: int | None
) -> None:
    value = json.loads((AGENT_FILES / file).read_bytes() if file else opencode())
    assert isinstance(value, dict)
    padding = {"a": "x" * 100_000, "b": [["y" * 2_000_000]]}
    for turned in (padding | value, dict(reversed((padding | value).items()))):
        found, sessions, _ = read(json.dumps(turned, indent=indent).encode())
        assert (found, len(sessions)) == (agent, 1)
