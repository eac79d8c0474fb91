from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from evaluators.model import Event
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import PARSERS, UnreadableTranscript, parse


def lines(*events: dict[str, Any]) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


CALL = {"ts": 1.5, "event": "tool_call", "id": "c1", "tool": "bash", "command": "t add"}
RESULT = {"ts": 2, "event": "tool_result", "id": "c1", "exit_code": 1, "output": "no", "duration_ms": 250}


def test_it_reads_events_of_the_first_family() -> None:
    found = parse(
        "events", lines({"event": "spawn", "command": "a"}, CALL, RESULT, {"event": "output", "text": "done"})
    )
    assert found.source == "events"
    assert found.events[1:] == (
        Event("tool_call", id="c1", name="bash", command="t add", timestamp="1.5"),
        Event("tool_result", id="c1", output="no", exit_code=1, timestamp="2.0", seconds=0.25),
        Event("message", text="done", role="assistant"),
    )
    assert (found.answer, found.unknown_events, found.problems) == ("done", 0, ())
    assert found.events[0].metadata == {"event": "spawn", "command": "a"}


def test_it_reads_events_of_the_second_family() -> None:
    found = parse(
        "events",
        lines(
            {
                "type": "setup_command",
                "index": 0,
                "command": "x",
                "exit_code": 0,
                "output": "",
                "success": True,
            },
            {"type": "execution", "tool": "mock", "output": "$ t add\nExit code: 2", "exit_code": 0},
        ),
    )
    assert [event.name for event in found.events] == ["setup_command", "execution"]
    metrics = analyse(found, Tool(binary="t"), completed=True)
    assert (metrics.source, [command.exit_code for command in metrics.commands]) == ("transcript", [2])


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "tool_call", "name": "Bash", "input": {"command": "t x"}}, Event("tool_call", name="Bash", command="t x", input={"command": "t x"})),
        ({"type": "tool_call", "name": "Read", "input": {"command": "t x"}}, Event("tool_call", name="Read", input={"command": "t x"})),
        ({"type": "tool_call", "id": 7, "name": "a"}, Event("tool_call", id="7", name="a")),
        ({"type": "tool_result", "error": "no"}, Event("tool_result", output="no", success=False)),
        ({"type": "message", "role": "user", "text": "hi"}, Event("message", text="hi", role="user")),
        ({"type": "model_step", "text": "hm"}, Event("model_step", text="hm")),
        ({"type": "error", "error": "no"}, Event("error", text="no")),
        ({"type": "tool_call", "name": 5}, Event("raw", name="tool_call", metadata={"type": "tool_call", "name": 5})),
    ],
)  # fmt: skip
def test_it_reads_each_kind_of_event(event: dict[str, Any], expected: Event) -> None:
    assert parse("events", lines(event)).events == (expected,)


FIELDS = {
    "id": 3,
    "name": "Bash",
    "input": {"command": "t x"},
    "text": "hi",
    "role": "user",
    "error": "no",
    "ts": 1.5,
}


@pytest.mark.parametrize(
    "kind", ["tool_call", "tool_result", "message", "model_step", "error", "output", "spawn"]
)
def test_a_kind_means_the_same_in_both_families(kind: str) -> None:
    first, second = {"event": kind, **FIELDS}, {"type": kind, **FIELDS}
    alone, mixed = parse("events", lines(first)).events, parse("events", lines(first, second)).events
    assert [msgspec.structs.replace(event, metadata={}) for event in mixed] == [
        msgspec.structs.replace(event, metadata={}) for event in alone * 2
    ]


def test_what_an_event_says_goes_before_its_type() -> None:
    event = {"type": "message", "event": "tool_call", "name": "a"}
    for log in (lines(event), lines({"type": "message"}, event), lines({"event": "message"}, event)):
        assert parse("events", log).events[-1] == Event("tool_call", name="a")


@pytest.mark.parametrize("family", ["event", "type"])
def test_a_field_of_a_wrong_type_makes_a_known_event_raw(family: str) -> None:
    wrong = {family: "message", "text": "hi", "exit_code": "none"}
    found = parse("events", lines({family: "message"}, wrong))
    assert found.events[1] == Event("raw", name="message", metadata=wrong)
    assert found.unknown_events == 1


def test_unknown_events_are_kept_and_counted() -> None:
    found = parse("events", lines(CALL, {"type": "dance", "x": 1}, {"x": 2}))
    assert found.unknown_events == 2
    assert [event.metadata for event in found.events[1:]] == [{"type": "dance", "x": 1}, {"x": 2}]


@pytest.mark.parametrize("parser", ["events", "trace"])
def test_a_log_without_one_known_event_is_unreadable(parser: str) -> None:
    with pytest.raises(UnreadableTranscript, match=r"found: dance, none\)"):
        parse(parser, lines({"type": "dance", "x": 1}, {"x": 2}))


def test_spans_of_no_agent_are_unreadable() -> None:
    with pytest.raises(UnreadableTranscript, match="isn't a trace of an agent"):
        parse("otel", lines({"name": "GET /", "attributes": {}}))


def test_an_empty_trace_is_a_trace() -> None:
    assert parse("trace", b"[]").source == "trace"


def test_bad_lines_are_reported_and_never_fatal() -> None:
    raw = b"oops\n\n" + lines(CALL) + b'\n[1]\n{"event": '
    found = parse("events", raw)
    assert len(found.events) == 1
    assert found.problems == ("3 of the lines aren't events and were left out (line 1, 4, 5).",)


def test_bytes_that_are_not_utf8_survive() -> None:
    (event,) = parse("events", b'{"event": "output", "text": "a\xffb"}').events
    assert event.text == "a\ufffdb"


def test_windows_line_ends_are_read() -> None:
    assert len(parse("events", lines(CALL) + b"\r\n" + lines(RESULT) + b"\r\n").events) == 2


def test_nothing_is_an_empty_transcript() -> None:
    assert parse("events", b"\n \n").source == "none"
    assert parse("plain_text", b"").source == "none"


def test_invalid_json_output_is_unreadable() -> None:
    with pytest.raises(UnreadableTranscript, match="None of the lines is a JSON object"):
        parse("events", b"hello\nworld")


def test_deep_nesting_is_a_bad_line() -> None:
    found = parse("events", lines(CALL) + b'\n{"input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert (len(found.events), len(found.problems)) == (1, 1)


def test_an_unknown_reader_is_named() -> None:
    with pytest.raises(UnreadableTranscript, match="no transcript reader called 'x'"):
        parse("x", b"")


def test_plain_text_is_kept_as_it_came() -> None:
    found = parse("plain_text", b"\x1b[1mhi\x1b[0m \xff\r\n")
    assert (found.source, found.text, found.answer) == (
        "transcript",
        "\x1b[1mhi\x1b[0m \ufffd\n",
        "hi \ufffd",
    )


@pytest.mark.parametrize("raw", [b"", b"\xff\x00", b"{", b"[]", b"null", b'{"type": 5}', b"[" * 50_000])
@pytest.mark.parametrize("name", sorted(PARSERS))
def test_a_reader_takes_anything_or_says_that_it_cannot(name: str, raw: bytes) -> None:
    try:
        found = PARSERS[name](raw)
    except UnreadableTranscript as error:
        assert str(error).endswith(".")
    else:
        assert all(event.type != "tool_call" for event in found.events)


@pytest.mark.spec("llm-tool-test", "Structured events come first")
def test_events_beside_the_output_are_preferred() -> None:
    found = parse("plain_text", b"all done", lines(CALL, RESULT))
    assert (found.source, len(found.events), found.text, found.answer) == (
        "events",
        2,
        "all done",
        "all done",
    )


def test_events_without_a_call_give_way_to_the_output() -> None:
    found = parse("plain_text", b"t list", lines({"event": "output", "text": "x"}))
    assert (found.source, found.text) == ("transcript", "t list")


def test_unreadable_events_are_reported() -> None:
    found = parse("plain_text", b"t list", b"oops")
    assert found.source == "transcript"
    assert found.problems[0].startswith("The structured events could not be read: None of the lines")


SESSION_OF_ANOTHER_PROGRAM = lines({"type": "session_meta", "payload": {}}, {"type": "response_item"})


def test_another_programs_events_are_an_error_where_the_output_has_no_call() -> None:
    with pytest.raises(UnreadableTranscript, match="none of its events has a known type"):
        parse("plain_text", b"git push", SESSION_OF_ANOTHER_PROGRAM)


def test_another_programs_events_are_a_note_where_the_output_has_calls() -> None:
    found = parse("events", lines(CALL, RESULT), SESSION_OF_ANOTHER_PROGRAM)
    assert [event.type for event in found.events] == ["tool_call", "tool_result"]
    assert found.problems[-1].startswith("The structured events could not be read: The output isn't a log")


def test_events_make_up_for_unreadable_output() -> None:
    found = parse("events", b"not json", lines(CALL))
    assert (found.source, found.text, len(found.problems)) == ("events", "not json", 1)


def call(id: str | None = None) -> Event:
    return Event("tool_call", id=id)


def result(code: int, id: str | None = None) -> Event:
    return Event("tool_result", id=id, exit_code=code)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param((call("a"), call("b"), result(2, "b"), result(1, "a")), [1, 2], id="by id"),
        pytest.param((call(), call(), result(1), result(2)), [1, 2], id="first in, first out"),
        pytest.param((call("a"), call("b"), result(1), result(2)), [1, 2], id="results without ids"),
        pytest.param((call(), result(1, "x")), [1], id="calls without ids"),
        pytest.param((call("a"), result(1, "x")), [None], id="the id of no call"),
        pytest.param((result(1), call("a")), [None], id="a result too early"),
        pytest.param((call("a"), Event("error", id="a")), [1], id="an error for a result"),
        pytest.param((call("a"), Event("error"), result(0, "a")), [0], id="an error of its own"),
        pytest.param((call("a"), Event("tool_result", id="a", success=False)), [1], id="no success"),
        pytest.param((call("a"), Event("tool_result", id="a", success=True)), [0], id="success"),
        pytest.param((Event("tool_call", exit_code=4), Event("tool_result")), [4], id="code in the call"),
        pytest.param((Event("tool_call", success=False),), [1], id="success in the call"),
    ],
)
def test_calls_are_paired_with_their_results(events: tuple[Event, ...], expected: list[int | None]) -> None:
    assert [one.exit_code for one in pair_calls(events)] == expected


SAID = {"type": "message", "role": "assistant", "text": "Done."}


@pytest.mark.parametrize("is_trace", [False, True])
def test_own_events_without_a_call_do_not_silence_the_transcript(is_trace: bool) -> None:
    found = parse("plain_text", b"$ mytool list\nMilk\n", lines(SAID), events_are_trace=is_trace)
    counted = analyse(found, Tool(binary="mytool"), completed=True)
    assert (counted.source, counted.total_commands) == ("transcript", 1)


def test_a_trace_without_a_call_is_its_own_answer() -> None:
    said = {**SAID, "text": "$ mytool list\nMilk"}
    counted = analyse(parse("trace", lines(said)), Tool(binary="mytool"), completed=True)
    assert (counted.source, counted.total_commands) == ("trace", 0)
