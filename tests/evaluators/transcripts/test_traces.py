from __future__ import annotations

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.calls import pair_calls
from evaluators.transcripts.traces import as_timestamp, as_trace, has_trace, read_trace, summarize_trace

TIME = "2026-01-01T00:00:00Z"


def test_it_keeps_every_field_of_the_trace_model():
    item = {
        "type": "tool_call",
        "timestamp": TIME,
        "id": "c1",
        "name": "search",
        "input": {"q": 1},
        "text": "t",
        "metadata": {"k": "v"},
    }
    found = read_trace([item])
    assert found.problems == ()
    assert as_trace(found.events) == [item]


@pytest.mark.parametrize("type_", ["model_step", "tool_call", "tool_result", "message", "error"])
def test_it_knows_the_five_types(type_):
    found = read_trace([{"type": type_, "timestamp": TIME}])
    assert (found.events[0].type, found.unknown_events) == (type_, 0)


@pytest.mark.parametrize("time", [None, 17, "yesterday", ""], ids=["missing", "a number", "no time", "empty"])
def test_an_event_without_a_valid_time_is_reported(time):
    found = read_trace([{"type": "tool_call", "name": "a", "timestamp": time}])
    assert found.events[0].timestamp is None
    assert found.problems == ("Trace events without an ISO 8601 timestamp: 1. They have no time.",)
    assert summarize_trace(found.events).tool_calls_by_name == {"a": 1}


def test_it_keeps_an_unknown_type_raw_and_counts_it():
    item = {"type": "thought", "timestamp": TIME, "text": "hm"}
    found = read_trace([item])
    assert found.unknown_events == 1
    assert summarize_trace(found.events).event_count == 1
    assert as_trace(found.events) == [item]
    assert "Unknown event types in the trace: thought" in found.problems[0]


def test_entries_that_are_not_objects_are_reported():
    found = read_trace([{"type": "message", "timestamp": TIME}, "x", None])
    assert len(found.events) == 1
    assert found.problems == ("Trace entries that are not objects: 2. They were ignored.",)


def test_it_does_not_count_calls_without_a_name_by_name():
    trace = [{"type": "tool_call"}, {"type": "tool_call", "name": ""}, {"type": "error", "text": "x"}]
    counts = summarize_trace(read_trace(trace).events)
    assert (counts.event_count, counts.error_count) == (3, 1)
    assert (counts.tool_names, counts.tool_calls_by_name) == ((), {})


def test_the_answer_is_the_last_message_that_is_not_the_users():
    trace = [
        {"type": "message", "role": "assistant", "text": "first"},
        {"type": "message", "role": "assistant", "text": " last "},
        {"type": "message", "role": "user", "text": "thanks"},
    ]
    assert read_trace(trace).answer == "last"


def test_an_error_with_the_id_of_a_call_fails_that_call():
    trace = [{"type": "tool_call", "id": "1", "name": "a"}, {"type": "error", "id": "1"}]
    assert [call.exit_code for call in pair_calls(read_trace(trace).events)] == [1]


@pytest.mark.parametrize(
    ("name", "input", "command"),
    [
        ("Bash", {"command": "git status"}, "git status"),
        ("shell", {"command": ["ls", "-l"]}, "ls -l"),
        ("search", {"command": "git status"}, None),
        ("bash", "git status", None),
    ],
)
def test_it_finds_the_command_line_of_a_shell_call(name, input, command):
    assert read_trace([{"type": "tool_call", "name": name, "input": input}]).events[0].command == command


def test_a_command_line_is_shown_as_input():
    assert as_trace([Event("tool_call", name="bash", command="ls")])[0]["input"] == {"command": "ls"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [("trace", True), ("events", True), ("stream", True), ("transcript", False), ("none", False)],
)
def test_text_alone_is_no_trace(source, expected):
    assert has_trace(Transcript(source=source)) is expected


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123+02:00", "2026-01-01 00:00:00", "2026-01-01"]
)
def test_a_valid_time_stays_as_it_is_written(text):
    assert as_timestamp(text) == text
