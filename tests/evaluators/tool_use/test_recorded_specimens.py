"""Whose call each is in records of the real codex, claude and opencode (`tests/real_agents/recorded_cases.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators.tool_use.recorded_commands import HOOK, Caller, origins_of, read_call_record

FOLDER = Path(__file__).parents[2] / "files/recorded"
AGENTS = ("claude_code", "codex", "opencode")
OWN = ("own", "quoted", "pipe", "loop", "launchers", "inline", "written", "background", "subagent")


def callers(name: str) -> list[tuple[str, str, str]]:
    """Return who made each call, by which program, and the first word that the tool was told."""
    calls = origins_of(read_call_record((FOLDER / f"{name}.jsonl").read_bytes()))
    return [(str(origin.caller), origin.program, (*call.argv[1:], "")[0]) for call, origin in calls]


def test_each_agent_has_each_session() -> None:
    kinds = [path.stem.rpartition("-")[0] for path in FOLDER.glob("*.jsonl")]
    assert {kind: kinds.count(kind) for kind in AGENTS} == dict.fromkeys(AGENTS, 13)


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("session", OWN)
def test_the_models_own_calls(kind: str, session: str) -> None:
    found = callers(f"{kind}-{session}")
    assert found
    assert {caller for caller, _, _ in found} == {Caller.MODEL}


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize(("session", "program"), [("make", "make"), ("script", "check.sh")])
def test_calls_of_programs_that_the_model_runs(kind: str, session: str, program: str) -> None:
    assert {each[:2] for each in callers(f"{kind}-{session}")} == {(Caller.PROGRAM, program)}


@pytest.mark.parametrize(
    ("kind", "programs"),
    [("claude_code", {HOOK}), ("codex", {HOOK, "codex"}), ("opencode", {"opencode.exe", "opencode"})],
)
def test_hooks(kind: str, programs: set[str]) -> None:
    found = callers(f"{kind}-hook")
    assert [word for caller, _, word in found if caller == Caller.MODEL] == ["create"]
    others = {program for caller, program, _ in found if caller == Caller.PROGRAM}
    assert others
    assert others <= programs


@pytest.mark.parametrize("kind", AGENTS)
def test_git_of_the_agents_own(kind: str) -> None:
    found = callers(f"{kind}-git")
    assert [word for caller, _, word in found if caller == Caller.MODEL] == ["status", "log"]
    assert len(found) > 5
