"""The calls of the tool by the real agents are recorded exactly, whoever asked for them.

With `EVALHUB_TEST_RECORDS=tests/files/recorded` the records are kept as specimens.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluators.recorded_calls import Caller, RecordedCall, origins_of
from tests.real_agents.real import AGENTS
from tests.real_agents.recorded_cases import cases, keep_specimen, play

FOLDER = os.environ.get("EVALHUB_TEST_RECORDS", "")
NAMES = [name for name in cases("codex") if name not in ("git", "hook")]
CALLS = {
    "own": [("list", 1), ("create a", 0), ("creat b", 1)],
    "quoted": [('create it\'s a "task"', 0)],
    "pipe": [("lst", 1)],
    "loop": [("create a", 0), ("create b", 0), ("create c", 0)],
    "launchers": [("create a", 0), ("create b", 0), ("list", 0)],
    "inline": [("list", 1)],
    "make": [("create by-make", 0), ("lst", 1)],
    "script": [("create by-script", 0), ("list", 0)],
    "written": [("create mine", 0)],
    "background": [("list", 1), ("lst", 1)],
    "subagent": [("lst", 1), ("create by-sub", 0)],
}

pytestmark = pytest.mark.parametrize("kind", AGENTS)


def recorded(kind: str, name: str, folder: Path) -> tuple[RecordedCall, ...]:
    record, calls = play(kind, cases(kind)[name], folder)
    if FOLDER:
        keep_specimen(Path(FOLDER), f"{kind}-{name}", record)
    return calls


def said(calls: Sequence[RecordedCall]) -> list[tuple[str, int | None]]:
    """Return what the tool was told, and its exit code."""
    return [(" ".join(call.argv[1:]), call.exit) for call in calls]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_recorded_with_its_end(tmp_path: Path, kind: str, name: str) -> None:
    calls = recorded(kind, name, tmp_path)
    expected = CALLS[name]
    if name == "background":
        expected = expected[:1] if kind == "claude_code" else expected
        assert sorted(said(calls)) == expected
    else:
        assert said(calls) == expected
    program = AGENTS[kind][0]
    expected_caller = Caller.PROGRAM if name in ("make", "script") else Caller.MODEL
    assert {origin.caller for _, origin in origins_of(calls)} == {expected_caller}
    assert all(any(program in each.exe or program in each.script for each in call.parents) for call in calls)


def test_hooks_are_told_from_the_models_commands(tmp_path: Path, kind: str) -> None:
    """Claude Code and Codex start both in a shell; opencode's plugins need none."""
    origins = origins_of(recorded(kind, "hook", tmp_path))
    own = [call for call, origin in origins if origin.caller is Caller.MODEL]
    hooks = [call for call, origin in origins if origin.caller is Caller.PROGRAM]
    assert said(own) == [("create a", 0)]
    assert hooks
    assert all("hook" in " ".join(call.argv) for call in hooks)


def test_the_agents_own_git_is_not_the_models(tmp_path: Path, kind: str) -> None:
    origins = origins_of(recorded(kind, "git", tmp_path))
    assert [call.argv[1] for call, origin in origins if origin.caller is Caller.MODEL] == ["status", "log"]
    programs = {origin.program for _, origin in origins if origin.caller is Caller.PROGRAM}
    assert programs
    assert all(AGENTS[kind][0] in program for program in programs)
