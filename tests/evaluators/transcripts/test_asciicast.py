from __future__ import annotations

import json

from evaluators.model import Event, Transcript
from evaluators.transcripts.asciicast import cast_lines, recording_steps
from tests.shell_events import shell


def events_of(*events: Event) -> tuple[list[list[object]], list[bool]]:
    found = recording_steps(Transcript(events=events, source="events"))
    lines = list(cast_lines(found, "create, trial 1", 1700000000))
    header = json.loads(lines[0])
    assert (header["version"], header["title"], header["timestamp"]) == (2, "create, trial 1", 1700000000)
    return [json.loads(line) for line in lines[1:]], [step.failed for step in found]


def test_a_call_is_typed_and_its_output_follows() -> None:
    events, failed = events_of(*shell("task add", "error: no name\nusage: task", 2))
    assert failed == [True]
    assert events == [
        [0.0, "m", "1. task add ✗"],
        [0.0, "o", "\x1b[1;32m$\x1b[0m task add\r\n"],
        [0.2, "o", "error: no name\r\nusage: task\r\n\x1b[31m[exit 2]\x1b[0m\r\n"],
    ]


def test_known_times_are_kept() -> None:
    call = Event("tool_call", "1", "bash", "ls", timestamp="2026-11-01T10:00:00Z")
    done = Event("tool_result", "1", output="a", exit_code=0, timestamp="2026-11-01T10:00:02Z")
    later = Event("tool_call", "2", "bash", "pwd", timestamp="2026-11-01T10:00:10+00:00")
    events, _ = events_of(call, done, later)
    assert [event[0] for event in events] == [0.0, 0.0, 2.0, 10.0, 10.0, 10.5]


def test_times_never_run_backwards() -> None:
    first = Event("tool_call", "1", "bash", "ls", timestamp="2026-11-01T10:00:10Z")
    second = Event("tool_call", "2", "bash", "pwd", timestamp="2026-11-01T10:00:00Z")
    third = Event("tool_call", "3", "bash", "id", timestamp="no time")
    times = [step.at for step in recording_steps(Transcript(events=(first, second, third)))]
    assert times == sorted(times)


def test_outputs_cannot_act_on_a_terminal_or_leak() -> None:
    hostile = "\x1b]52;c;aGk=\x07\x1b[2Jkey=sk-abcdefghijklmnopqrstuvwxyz\r\nok\x9b1m"
    events, _ = events_of(*shell("cat \x1b]0;x\x07notes", hostile))
    text = "".join(str(event[2]) for event in events)
    for known in ("\x1b[1;32m", "\x1b[0m"):
        text = text.replace(known, "")
    assert "\x1b" not in text and "\x07" not in text and "\x9b" not in text
    assert "abcdefghijklmnopqrstuvwxyz" not in text


def test_long_outputs_are_shortened() -> None:
    events, _ = events_of(*shell("cat big", "x" * 50_000))
    assert len(str(events[-1][2])) < 11_000
    assert "40000 characters" in str(events[-1][2])


def test_calls_of_tools_show_their_input() -> None:
    call = Event("tool_call", "1", "read", input={"path": "a.txt"})
    events, _ = events_of(call, Event("tool_result", "1", output={"stdout": "x", "stderr": "y"}))
    assert events[1][2] == '\x1b[1;32m$\x1b[0m read {"path": "a.txt"}\r\n'
    assert events[2][2] == "x\r\ny\r\n"
