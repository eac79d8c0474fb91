"""The calls of the tool by the real agents are recorded exactly, whoever asked for them.

With `EVALHUB_TEST_RECORDS=tests/files/recorded` the records are kept as specimens.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluators.tool_use.recorded_commands import Caller, RecordedCall, origins_of
from tests.real_agents.real import AGENTS
from tests.real_agents.recorded_cases import cases, keep_specimen, one_after_the_other, play

FOLDER = os.environ.get("EVALHUB_TEST_RECORDS", "")
ONE_AFTER_THE_OTHER = ("inline", "own", "quoted", "pipe", "loop", "launchers", "make", "script", "written")
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
    folder.mkdir(exist_ok=True)
    record, calls = play(kind, cases(kind)[name], folder)
    if FOLDER:
        keep_specimen(Path(FOLDER), f"{kind}-{name}", record)
    return calls


def said(calls: Sequence[RecordedCall]) -> list[tuple[str, int | None]]:
    """Return what the tool was told, and its exit code."""
    return [(" ".join(call.argv[1:]), call.exit) for call in calls]


def callers(kind: str, calls: Sequence[RecordedCall]) -> list[Caller]:
    """Return who asked for each call; all of them are the agent's."""
    program = AGENTS[kind][0]
    assert all(any(program in each.exe or program in each.script for each in call.parents) for call in calls)
    return [origin.caller for _, origin in origins_of(calls)]


def test_every_call_is_recorded_with_its_end(tmp_path: Path, kind: str) -> None:
    found = cases(kind)
    if FOLDER:
        for name in ONE_AFTER_THE_OTHER:
            recorded(kind, name, tmp_path / name)
    _, calls = play(kind, one_after_the_other([found[name] for name in ONE_AFTER_THE_OTHER]), tmp_path)
    assert said(calls) == [call for name in ONE_AFTER_THE_OTHER for call in CALLS[name]]
    by_program = [name in ("make", "script") for name in ONE_AFTER_THE_OTHER for _ in CALLS[name]]
    assert callers(kind, calls) == [Caller.PROGRAM if each else Caller.MODEL for each in by_program]


def test_calls_in_the_background_are_recorded(tmp_path: Path, kind: str) -> None:
    calls = recorded(kind, "background", tmp_path)
    assert sorted(said(calls)) == CALLS["background"][: 1 if kind == "claude_code" else 2]
    assert set(callers(kind, calls)) == {Caller.MODEL}


def test_calls_of_sub_agents_are_recorded(tmp_path: Path, kind: str) -> None:
    calls = recorded(kind, "subagent", tmp_path)
    assert said(calls) == CALLS["subagent"]
    assert set(callers(kind, calls)) == {Caller.MODEL}


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
