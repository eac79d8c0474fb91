"""Successful calls that an agent's stream states and the record of the tool doesn't have."""

from __future__ import annotations

import json

import pytest

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.command_gates import CommandRan
from evaluators.grading.gates.transcript_gate import NoTranscriptErrors
from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.recorded_commands import count_lost_calls, lost_calls_line, read_call_record
from evaluators.tool_use.tool import Tool


def stream(*commands: tuple[str, int | None]) -> Transcript:
    """Return a stream whose calls state these ends."""
    events: list[Event] = []
    for n, (command, code) in enumerate(commands):
        events.append(Event("tool_call", str(n), "bash", command=command))
        events.append(Event("tool_result", str(n), exit_code=code, output=""))
    return Transcript(tuple(events), source="stream")


def record(*lines: str) -> bytes:
    """Return a record in which a shell of the agent ran each line."""
    entries = [
        {
            "n": n,
            "how": "file",
            "path": "t",
            "argv": line.split(),
            "start": float(n),
            "exit": 0,
            "asker": {"pid": n, "argv": ["/bin/bash", "-c", line], "exe": "/usr/bin/bash"},
        }
        for n, line in enumerate(lines, 1)
    ]
    return b"".join(json.dumps(each).encode() + b"\n" for each in entries)


CASES = {
    "a forged call": ([("t list", 0), ("t add", 0)], ["t list"], 1),
    "more calls than ran": ([("t list", 0)] * 3, ["t list"], 2),
    "a call that failed": ([("t list", 0), ("t add", 1)], ["t list"], 0),
    "a call of unknown end": ([("t add", None)], [], 0),
    "a line whose last command alone is stated": ([("t add || true", 0)], [], 0),
    "more calls than are stated": ([("t list", 0)], ["t list", "t add"], 0),
    "another program": ([("git list", 0)], [], 0),
    "elsewhere": ([("ssh host t list", 0)], [], 0),
}


@pytest.mark.parametrize(("stated", "ran", "unrecorded"), CASES.values(), ids=CASES)
def test_they_are_counted(stated: list[tuple[str, int | None]], ran: list[str], unrecorded: int) -> None:
    calls = read_call_record(record(*ran))
    assert len(calls) == len(ran)
    found = analyse(stream(*stated), Tool(binary="t"), completed=True, record=calls)
    assert found.unrecorded == unrecorded


def test_nothing_contradicts_a_stream_without_a_record() -> None:
    assert analyse(stream(("t list", 0)), Tool(binary="t"), completed=True).unrecorded == 0


def test_events_count_where_the_record_lost_calls() -> None:
    calls = read_call_record(record("t list"))
    found = analyse(
        stream(("t list", 0), ("t add", 1)), Tool(binary="t"), completed=True, record=calls, lost=3
    )
    assert (found.source, found.ends, found.error_rate, found.lost) == ("stream", "reported", 0.5, 3)
    assert found.unrecorded == 0


def test_without_events_the_rates_of_such_a_record_are_not_measured() -> None:
    calls = read_call_record(record("t list"))
    found = analyse(Transcript(text="ok"), Tool(binary="t"), completed=True, record=calls, lost=3)
    assert (found.source, found.total_commands, found.error_rate, found.first_try_success_rate) == (
        "recorded",
        1,
        None,
        None,
    )


@pytest.mark.parametrize(("lost", "passed"), [(0, True), (3, False)])
def test_no_gate_on_commands_passes_where_calls_were_lost(lost: int, passed: bool) -> None:
    known = TrialEvidence(
        transcript=Transcript(text="ok"),
        tool=Tool(binary="t"),
        record=read_call_record(record("t list")),
        lost_calls=lost,
    )
    for gate in (NoTranscriptErrors(), CommandRan(words=["t", "list"], times=1)):
        score = gate.check(known)
        assert score.passed is passed
        assert ("3 executions of the tool could not be recorded." in score.message) is not passed


def test_a_record_keeps_how_many_calls_it_lost() -> None:
    content = record("t list")
    assert count_lost_calls(content) == 0
    assert count_lost_calls(content + lost_calls_line(3)) == 3
    assert read_call_record(content + lost_calls_line(3)) == read_call_record(content)
