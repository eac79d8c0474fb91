from __future__ import annotations

import json

import pytest

from evaluators.model import Usage, total_usage
from evaluators.transcripts import PARSERS, UnreadableTranscript, parse
from evaluators.transcripts.traces import summarize_trace

CALL = {"type": "tool_call", "timestamp": "2026-01-01T00:00:00Z", "name": "search"}


def trace(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(trace([CALL, CALL]), id="a list"),
        pytest.param(trace({"trace": [CALL, CALL]}), id="an object"),
        pytest.param(trace(CALL) + b"\r\n\n" + trace(CALL) + b"\n", id="one a line"),
    ],
)
def test_it_reads_a_trace_in_every_shape(raw):
    found = parse("trace", raw)
    assert found.source == "trace"
    assert [event.name for event in found.events] == ["search", "search"]


def test_it_takes_the_answer_that_stands_beside_the_trace():
    assert parse("trace", trace({"text": "42", "trace": [CALL]})).answer == "42"


def test_an_answer_without_a_trace_is_no_trace():
    found = parse("trace", trace({"text": "42"}))
    assert (found.source, found.answer, found.events) == ("transcript", "42", ())


def test_an_empty_trace_is_a_trace():
    assert parse("trace", b"[]").source == "trace"


def test_a_single_event_is_a_trace():
    assert len(parse("trace", trace(CALL)).events) == 1


@pytest.mark.parametrize(
    "raw",
    [b"", b"  \n", b"hello", b'"text"', b"7", b'{"trace": {}}', b'{"other": 1}', b"[" * 100_000],
    ids=["empty", "blank", "text", "a string", "a number", "trace isn't a list", "another object", "deep"],
)
def test_it_refuses_what_is_no_trace(raw):
    with pytest.raises(UnreadableTranscript):
        parse("trace", raw)


def pairs(**attributes: object) -> list[dict[str, object]]:
    kinds = {str: "stringValue", int: "intValue", bool: "boolValue", float: "doubleValue"}
    return [
        {
            "key": key.replace("__", "."),
            "value": {kinds[type(value)]: str(value) if type(value) is int else value},
        }
        for key, value in attributes.items()
    ]


OTLP = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "spanId": "b",
                            "name": "execute_tool search",
                            "startTimeUnixNano": "1767225601000000000",
                            "attributes": pairs(
                                gen_ai__operation__name="execute_tool",
                                gen_ai__tool__name="search",
                                gen_ai__tool__call__id="call-1",
                                gen_ai__tool__call__arguments='{"q": "cats"}',
                                gen_ai__tool__call__result="three",
                            ),
                        },
                        {
                            "spanId": "a",
                            "name": "chat m",
                            "startTimeUnixNano": "1767225600000000000",
                            "attributes": pairs(
                                gen_ai__operation__name="chat",
                                gen_ai__request__model="m",
                                gen_ai__usage__input_tokens=10,
                                gen_ai__usage__output_tokens=3,
                                gen_ai__output__messages='[{"role": "assistant", "parts": [{"type": "text", "content": "three cats"}]}]',
                            ),
                        },
                    ]
                }
            ]
        }
    ]
}


@pytest.mark.parametrize("parser", ["otel", "trace"])
def test_it_reads_genai_spans_in_the_order_in_which_they_began(parser):
    found = parse(parser, trace(OTLP))
    assert [event.type for event in found.events] == ["model_step", "message", "tool_call", "tool_result"]
    assert found.events[0].timestamp == "2026-01-01T00:00:00Z"
    call = found.events[2]
    assert (call.id, call.name, call.input) == ("call-1", "search", {"q": "cats"})
    assert found.events[3].output == "three"
    assert (found.answer, found.usage, found.source) == ("three cats", Usage(10, 3), "trace")
    assert summarize_trace(found.events).tool_calls_by_name == {"search": 1}


def span(name: str, start: str, **attributes: object) -> dict[str, object]:
    return {
        "name": name,
        "context": {"span_id": name},
        "start_time": start,
        "status": {"status_code": "OK"},
        "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
    }


# fmt: off
OPENINFERENCE = [
    span("agent", "2026-01-01T00:00:00Z", openinference__span__kind="AGENT"),
    span(
        "llm",
        "2026-01-01T00:00:01Z",
        openinference__span__kind="LLM",
        llm__model_name="m",
        llm__token_count__prompt=5,
        llm__token_count__completion=2,
        llm__output_messages__0__message__role="assistant",
        llm__output_messages__0__message__content="done",
    ),
    span("lookup", "2026-01-01T00:00:02Z", openinference__span__kind="TOOL", tool__name="lookup", input__value='{"id": 7}', output__value="found"),
]
# fmt: on


@pytest.mark.parametrize("lines", [False, True], ids=["a list", "one a line"])
def test_it_reads_openinference_spans(lines):
    raw = b"\n".join(map(trace, OPENINFERENCE)) if lines else trace(OPENINFERENCE)
    found = parse("otel", raw)
    assert [event.type for event in found.events] == ["model_step", "message", "tool_call", "tool_result"]
    assert (found.answer, found.usage, found.unknown_events) == ("done", Usage(5, 2), 0)
    assert found.events[2].input == {"id": 7}
    assert found.events[3].output == "found"


def test_it_reads_attributes_that_are_nested():
    nested = {"name": "t", "attributes": {"openinference": {"span": {"kind": "TOOL"}}, "tool": {"name": "a"}}}
    assert [event.name for event in parse("otel", trace([nested])).events] == ["a", "a"]


@pytest.mark.parametrize(
    "status",
    [{"code": 2, "message": "down"}, {"code": "STATUS_CODE_ERROR", "message": "down"}],
    ids=["number", "word"],
)
def test_a_tool_that_failed_is_an_error_of_its_call(status):
    failed = {**span("lookup", "2026-01-01T00:00:00Z", openinference__span__kind="TOOL"), "status": status}
    call, error = parse("otel", trace([failed])).events
    assert (error.type, error.text, error.success, error.id) == ("error", "down", False, call.id)


@pytest.mark.parametrize(
    "status",
    [{"status_code": "ERROR", "status_message": "down"}, {"status": {"status_code": "StatusCode.ERROR"}}],
    ids=["Phoenix", "Python's name"],
)
def test_a_failed_span_is_one_in_every_spelling(status):
    lookup = span("lookup", "2026-01-01T00:00:00Z", openinference__span__kind="TOOL")
    del lookup["status"]
    _, error = parse("otel", trace([{**lookup, **status}])).events
    assert (error.type, error.success) == ("error", False)


def test_a_span_that_is_written_at_its_begin_and_its_end_counts_once():
    model, tool = OPENINFERENCE[1:]
    ended = [{**each, "end_time": "2026-01-01T00:00:09Z"} for each in (model, tool)]
    found = parse("otel", b"\n".join(map(trace, (model, tool, *ended))))
    assert [event.type for event in found.events] == ["model_step", "message", "tool_call", "tool_result"]
    assert found.usage == Usage(5, 2)
    assert found.events[3].timestamp == "2026-01-01T00:00:09Z"


def test_spans_of_two_traces_may_have_one_id():
    lookup = {"spanId": "1", "name": "t", "attributes": {"openinference.span.kind": "TOOL"}}
    found = parse("otel", trace([{**lookup, "traceId": "a"}, {**lookup, "traceId": "b"}]))
    assert [event.type for event in found.events].count("tool_call") == 2


def test_a_model_that_failed_is_an_error():
    failed = {**span("llm", "", openinference__span__kind="LLM"), "status": {"code": 2}}
    assert [event.type for event in parse("otel", trace([failed])).events] == ["model_step", "error"]


def test_it_reads_lists_and_mappings_of_otlp():
    value = {"arrayValue": {"values": [{"intValue": "1"}, {"boolValue": True}]}}
    inner = {"kvlistValue": {"values": [{"key": "a", "value": value}]}}
    attributes = [*pairs(openinference__span__kind="TOOL"), {"key": "tool.parameters", "value": inner}]
    assert parse("otel", trace([{"attributes": attributes}])).events[0].input == {"a": [1, True]}


@pytest.mark.parametrize("raw", [b"[]", b"{}", b'[{"type": "tool_call"}]', b"x"])
def test_it_refuses_what_holds_no_spans(raw):
    with pytest.raises(UnreadableTranscript):
        parse("otel", raw)


def test_both_readers_are_listed():
    assert {"trace", "otel"} <= PARSERS.keys()


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        pytest.param(
            {
                "openinference__span__kind": "LLM",
                "llm__token_count__prompt": 50,
                "llm__token_count__completion": 20,
                "llm__token_count__prompt_details__cache_read": 40,
                "llm__token_count__prompt_details__cache_write": 5,
                "llm__token_count__completion_details__reasoning": 15,
            },
            Usage(50, 20, cache_read=40, cache_write=5, reasoning=15),
            id="openinference",
        ),
        pytest.param(
            {
                "gen_ai__operation__name": "chat",
                "gen_ai__usage__input_tokens": 50,
                "gen_ai__usage__output_tokens": 20,
                "gen_ai__usage__cache_read__input_tokens": 40,
                "gen_ai__usage__cache_creation__input_tokens": 5,
            },
            Usage(50, 20, cache_read=40, cache_write=5),
            id="opentelemetry",
        ),
    ],
)
def test_spans_count_the_cache_as_input(attributes, usage):
    spans = [span(name, "2026-01-01T00:00:00Z", **attributes) for name in ("one", "two")]
    assert parse("otel", trace(spans[:1])).usage == usage
    assert parse("otel", trace(spans)).usage == total_usage([usage, usage])
