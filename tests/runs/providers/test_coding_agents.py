from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluators.transcripts import parse
from evaluators.transcripts.latest import LatestCalls
from runs.errors import ProviderError
from runs.providers.base import Look
from tests.runs.providers.agents import agent, beside, invocation

QUESTION = "[[ ## user_query ## ]]\n\nImplement it."
CLAUDE = ["-p", "--output-format", "stream-json", "--verbose"]
OPEN = ["--permission-mode", "bypassPermissions"]
KINDS = ["claude_code", "opencode"]


def session(kind: str, *, fails: str = "", **fields: Any):
    return agent(kind, "session", env={"FAKE_STREAM": kind, "FAKE_FAILS": fails}, **fields)


def read(tmp_path: Path, name: str) -> str:
    return (tmp_path / "workspace" / name).read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_works_in_the_workspace_and_its_stream_is_read(tmp_path, kind):
    recording = session(kind).invoke(invocation(tmp_path))
    transcript = parse(recording.parser, recording.raw)
    assert transcript.answer == "Created the task and listed it."
    assert sum(event.type == "tool_call" for event in transcript.events) == 6
    assert "Created the task" in recording.logs["log"].decode()


@pytest.mark.parametrize(
    ("kind", "fields", "words", "stdin"),
    [
        ("claude_code", {}, [*CLAUDE, *OPEN], QUESTION),
        (
            "claude_code",
            {"model": "m", "max_turns": 9, "args": ["--bare"]},
            [*CLAUDE, "--model", "m", "--max-turns", "9", *OPEN, "--bare"],
            QUESTION,
        ),
        ("claude_code", {"args": ["--permission-mode=plan"]}, [*CLAUDE, "--permission-mode=plan"], QUESTION),
        ("opencode", {}, ["run", "--format", "json", QUESTION], ""),
        (
            "opencode",
            {"model": "m", "args": ["--share"]},
            ["run", "--format", "json", "--model", "m", "--share", QUESTION],
            "",
        ),
    ],
)  # fmt: skip
def test_it_is_started_as_its_program_expects(tmp_path, kind, fields, words, stdin):
    session(kind, **fields).invoke(invocation(tmp_path))
    assert read(tmp_path, "told.txt") == "\n".join(words) + "\n"
    assert read(tmp_path, "read.txt") == stdin


def test_the_prompt_names_what_is_to_be_read_and_the_run_its_model(tmp_path):
    file = beside(tmp_path, "m.py")
    session("claude_code", model="m").invoke(invocation(tmp_path, files=(file,), model="other"))
    assert f"[m.py](file://{file})" in read(tmp_path, "read.txt")
    assert "--model\nother\n" in read(tmp_path, "told.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_session_is_judged_only_in_a_workspace(tmp_path, kind):
    broken = session(kind, fails="yes")
    assert broken.invoke(invocation(tmp_path)).exit_code == 1
    with pytest.raises(ProviderError, match="exit code 1: stderr: no credit") as caught:
        broken.invoke(invocation(tmp_path, in_workspace=False))
    assert caught.value.kind == "command"


@pytest.mark.parametrize("kind", KINDS)
def test_it_checks_that_its_program_exists(kind):
    assert session(kind).check().version == "1.2.3"
    assert "set `executable`" in session(kind, executable="/no/such").check().sentence


@pytest.mark.parametrize("kind", KINDS)
def test_its_calls_are_reported_and_counted_once(tmp_path, kind):
    looks: list[Look] = []
    session(kind).invoke(invocation(tmp_path, watch=looks.append))
    [look] = looks
    assert [look(), look()] == [LatestCalls("./taskmgr list", 6, 0)] * 2


def test_its_last_call_is_reported_while_it_works(tmp_path):
    program = tmp_path / "slow"
    block = {"type": "tool_use", "name": "Bash", "input": {"command": "taskmgr list"}}
    line = json.dumps({"type": "assistant", "message": {"content": [block]}})
    program.write_text(f"#!/bin/sh\necho '{line}'\nsleep 60\n")
    program.chmod(0o755)
    looks: list[Look] = []
    asked = invocation(
        tmp_path, watch=looks.append, cancelled=lambda: looks[0]().last == "taskmgr list", in_workspace=True
    )
    assert agent("claude_code", "", executable=str(program)).invoke(asked).cancelled
