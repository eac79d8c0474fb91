"""Whether the tool's calls started."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.judges.rubric_judge import blind_account
from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.not_started import NotStarted, find_not_started
from evaluators.tool_use.tool import Tool

TALLY = Tool(binary="tally")


def transcript(*calls: tuple[str, int | None, str]) -> Transcript:
    events: list[Event] = []
    for n, (command, code, output) in enumerate(calls):
        events.append(Event("tool_call", id=str(n), name="Bash", command=command))
        events.append(Event("tool_result", id=str(n), exit_code=code, output=output))
    return Transcript(events=tuple(events), source="events")


def find(*calls: tuple[str, int | None, str], record: Any = None) -> NotStarted | None:
    told = transcript(*calls)
    return find_not_started(told, TALLY, analyse(told, TALLY, completed=True, record=record))


@pytest.mark.parametrize(
    "call",
    [
        ("./tally add 3", 127, "sh: 1: ./tally: not found"),
        ("./tally add 3", 127, "bash: ./tally: No such file or directory"),
        ("tally add 3", 127, "bash: line 1: tally: command not found"),
        ("tally add 3", 127, "zsh: command not found: tally"),
        ("tally add 3", 127, ""),
        ("./tally add 3", 126, "bash: ./tally: Permission denied"),
        ("./tally add 3; echo done", 0, "sh: 1: ./tally: not found\ndone"),
        ("./tally add 3 | head", None, "/bin/sh: 1: ./tally: not found"),
    ],
)
def test_calls_of_a_missing_program_did_not_start(call):
    assert find(call) is not None
    assert find(call, record=()) is not None


@pytest.mark.parametrize(
    "call",
    [
        ("tally add 3", 0, ""),
        ("tally add x", 1, "tally: x: No such file or directory"),
        ("tally add x", 2, "tally: No such file or directory"),
        ("tally run", 127, "/opt/tally: line 3: helper: not found"),
        ("cat tally.md", 127, "sh: cat: not found"),
        ("ls", 0, "tally: not found"),
    ],
)
def test_other_calls_started_or_are_none_of_the_tool(call):
    assert find(call) is None


def test_one_call_that_started_is_enough():
    missing = ("./tally add 3", 127, "sh: 1: ./tally: not found")
    assert find(missing, missing).calls == 2
    assert find(missing, ("files/tally add 3", 0, "")) is None


def test_the_blind_judge_reads_that_no_call_started():
    told = transcript(("./tally add 3", 127, "sh: 1: ./tally: not found"))
    account = blind_account(TrialEvidence(told, tool=TALLY, answer="done", record=()))
    assert "no call started: `tally add 3` ended with exit code 127" in account
