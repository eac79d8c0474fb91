"""Sub-agents of Gemini CLI and Qwen Code, whose commands their streams leave out (real sessions)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.transcript_gate import NoTranscriptErrors
from evaluators.model import Event, Transcript, Usage
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from evaluators.transcripts.sessions.sub_agents import MAIN, SUB_AGENT, read_own_account, with_sub_agents

FILES = Path(__file__).parents[2] / "files"
KINDS = ("gemini_cli", "qwen_code")


def content(kind: str, name: str) -> bytes:
    return (FILES / f"sub_agents/{kind}.{name}.jsonl").read_bytes()


def count(read: Transcript, binary: str = "taskmgr") -> Interaction:
    return analyse(read, Tool(binary=binary), completed=True)


@pytest.mark.parametrize("kind", KINDS)
def test_their_commands_and_tokens_come_from_their_session_files(kind: str) -> None:
    files = {MAIN: content(kind, "session"), f"{SUB_AGENT}1": content(kind, "sub-agent")}
    read = with_sub_agents(parse(kind, content(kind, "stream")), kind, files)
    found = count(read)
    ends = {command.line.partition(" ")[2]: command.exit_code for command in found.commands}
    expected = {"--help": 0, "creat": 1, "create 'scripts system'": 0}
    assert {name: ends.get(name) for name in expected} == expected
    assert (found.total_commands, read.unseen_agents, read.problems) == (4, 0, ())
    assert read.usage == Usage(800, 160)
    assert len({event.metadata.get("agent") for event in read.events if event.type == "tool_call"}) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_files_the_rates_are_not_available(kind: str) -> None:
    read = parse(kind, content(kind, "stream"))
    assert read.unseen_agents == 1
    assert count(read).error_rate is None


def test_a_gate_says_that_commands_are_not_known() -> None:
    read = parse("gemini_cli", (FILES / "cases/68/gemini.jsonl").read_bytes())
    found = count(read, "kv")
    assert (found.total_commands, found.error_rate, found.first_try_success_rate) == (3, None, None)
    score = NoTranscriptErrors().check(TrialEvidence(transcript=read, tool=Tool(binary="kv")))
    assert "1 sub-agent session not seen" in score.message


def test_calls_that_the_stream_only_counts_are_a_sub_agents() -> None:
    """Earlier releases call sub-agents by names of their own."""
    stream = (FILES / "cases/68/gemini.jsonl").read_bytes().replace(b"invoke_agent", b"codebase_investigator")
    assert parse("gemini_cli", stream).unseen_agents == 1


def test_a_sub_agent_that_stands_in_the_stream_counts_once() -> None:
    """Qwen Code 0.15 streams its sub-agents."""
    file = content("qwen_code", "sub-agent")
    streamed = [
        Event("tool_call", id, "run_shell_command", "./taskmgr creat")
        for id in re.findall(r'"functionCall": \{"id": "(\w+)"', file.decode())
    ]
    main = parse("qwen_code", content("qwen_code", "stream"))
    main = structs.replace(main, events=(*main.events, *streamed))
    assert len(streamed) == 2
    assert with_sub_agents(main, "qwen_code", {f"{SUB_AGENT}1": file}).events == main.events


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_lost_its_end_is_read_from_the_session_file(kind: str) -> None:
    files = {MAIN: content(kind, "session")}
    stream = content(kind, "stream")
    assert read_own_account(kind, stream, files) is None
    cut = b"".join(stream.splitlines(keepends=True)[:-2])
    found = read_own_account(kind, cut, files)
    assert found is not None
    assert found.answer == "done"
    assert [event.command for event in found.events if event.command] == [
        "./taskmgr --help",
        "./taskmgr list",
    ]
    assert "the agent's own account" in found.problems[-1]
    unanswered = b"".join(files[MAIN].splitlines(keepends=True)[:4])
    assert read_own_account(kind, cut, {MAIN: unanswered}) is None
    assert read_own_account(kind, cut, {}) is None
