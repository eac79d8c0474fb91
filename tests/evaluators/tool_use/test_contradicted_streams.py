"""Successful calls that an agent's stream states and the record of the tool doesn't have."""

from __future__ import annotations

import json

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.recorded_calls import read_call_record
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
