"""Answers of endpoints, in every shape that is known by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.grading.assertions import ToolCall, calls_of_transcript
from evaluators.model import Event, Usage
from evaluators.transcripts import UnreadableTranscript, chat, parse
from evaluators.transcripts.paths import MISSING, get_at_path, place_item
from tests.linear_time import assert_linear_time

WEATHER = {"city": "Oslo"}


def read(value: Any, **fields: str):
    return chat.read_chat_answer(json.dumps(value).encode(), **fields)


@pytest.mark.parametrize(
    "value",
    [
        {"response": "hi"},
        {"text": "hi"},
        {"message": "hi"},
        {"output": "hi"},
        {"content": "hi"},
        {"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]},
        {"message": {"role": "assistant", "content": "hi"}},
        {"choices": [{"message": {"content": "hi", "tool_calls": []}}]},
        "hi",
    ],
    ids=json.dumps,
)
def test_it_finds_the_text(value):
    assert read(value).answer == "hi"


def test_plain_text_is_an_answer():
    assert parse("chat", b"hi there").answer == "hi there"


@pytest.mark.parametrize("key", ["toolCalls", "tool_calls", "toolsCalled"])
@pytest.mark.parametrize(
    "call",
    [
        {"name": "w", "params": WEATHER},
        {"name": "w", "args": WEATHER},
        {"name": "w", "input": WEATHER},
        {"name": "w", "arguments": json.dumps(WEATHER)},
        {"id": "c1", "type": "function", "function": {"name": "w", "arguments": json.dumps(WEATHER)}},
        {"tool": "w", "params": WEATHER},
    ],
    ids=["params", "args", "input", "JSON", "function", "tool"],
)
def test_it_finds_the_calls(key, call):
    assert calls_of_transcript(read({"response": "", key: [call]})) == (ToolCall("w", WEATHER),)


RESPONSES = {
    "output": [
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
        {"type": "function_call", "call_id": "c1", "name": "w", "arguments": json.dumps(WEATHER)},
    ]
}
MESSAGES = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "c1", "name": "w", "input": WEATHER},
    ],
}


@pytest.mark.parametrize(
    "value", [RESPONSES, MESSAGES, {"message": MESSAGES}], ids=["Responses", "Messages", "message"]
)
def test_it_finds_the_calls_among_the_parts_of_an_answer(value):
    found = read(value)
    assert (calls_of_transcript(found), found.answer) == ((ToolCall("w", WEATHER),), "hi")


def test_calls_may_be_names_only():
    assert calls_of_transcript(read({"text": "", "toolsCalled": ["a", "b"]})) == (
        ToolCall("a"),
        ToolCall("b"),
    )


@pytest.mark.parametrize(
    ("fields", "success"),
    [
        ({"success": True}, True),
        ({"success": False, "error": None}, False),
        ({"error": None, "result": 1}, True),
        ({"error": "no"}, False),
        ({"result": {"status": 200}}, True),
        ({"result": {"status": 404}}, False),
        ({"result": {"error": "no"}}, False),
        ({"result": {"isError": True}}, False),
        ({"result": "x"}, None),
        ({}, None),
    ],
    ids=json.dumps,
)
def test_it_knows_whether_a_call_succeeded(fields, success):
    (call,) = calls_of_transcript(read({"response": "", "toolCalls": [{"name": "w", **fields}]}))
    assert call.success is success


def test_it_takes_the_time_of_each_call():
    (call,) = calls_of_transcript(read({"response": "", "toolCalls": [{"name": "w", "durationMs": 12.5}]}))
    assert call.seconds == 0.0125


@pytest.mark.parametrize(
    "usage",
    [
        {"inputTokens": 3, "outputTokens": 4},
        {"input_tokens": 3, "output_tokens": 4},
        {"prompt_tokens": 3, "completion_tokens": 4},
    ],
)
def test_it_finds_the_usage(usage):
    assert read({"response": "", "usage": usage}).usage == Usage(3, 4)


@pytest.mark.parametrize("value", [{"costUsd": 0.5}, {"cost": 0.5}, {"usage": {"cost": 0.5}}], ids=json.dumps)
def test_it_finds_the_cost(value):
    assert read({"response": "", **value}).cost_usd == 0.5


def test_omitted_values_are_unknown():
    found = read({"response": "hi"})
    assert (found.usage, found.cost_usd, found.source) == (None, None, "transcript")
    assert read({"response": "hi", "toolCalls": []}).source == "events"


def test_given_paths_come_before_the_known_names():
    value = {"response": "no", "data": {"say": "hi", "used": ["w"]}, "toolCalls": ["no"]}
    found = read(value, text_at="data.say", calls_at="data.used")
    assert (found.answer, calls_of_transcript(found)) == ("hi", (ToolCall("w"),))


def test_a_given_path_that_leads_nowhere_leaves_the_known_names():
    assert read({"response": "hi"}, text_at="text").answer == "hi"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"reply": "hi"}', "no field for its text .its fields: reply."),
        (b"{}", "its fields: none"),
        (b'{"response": "hi', "begins like JSON"),
        (b'{"error": {"message": "quota"}, "response": ""}', "error: quota"),
        (b'event: error\ndata: {"message": "quota"}\n\n', "error: quota"),
    ],
)
def test_it_refuses_texts_without_an_answer(raw, message):
    with pytest.raises(UnreadableTranscript, match=message):
        parse("chat", raw)


@pytest.mark.parametrize("odd", [None, 3, "x", [3], {"a": 1}, True], ids=str)
def test_no_value_breaks_it(odd):
    for key in ("toolCalls", "usage", "cost", "error", "choices", "message"):
        read({"response": "hi", key: odd})
        read({"response": "hi", "toolCalls": [{"name": "w", key: odd, "params": odd, "result": odd}]})


def test_events_survive_being_written():
    found = read({"response": "hi", "toolCalls": [{"name": "bash", "args": {"command": "ls"}, "success": False, "durationMs": 5}]})  # fmt: skip
    again = parse("events", chat.as_lines(found))
    assert again.events == found.events
    assert again.events[0].command == "ls"


def stream(*events: Any) -> bytes:
    return "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events).encode()  # fmt: skip


def openai(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}


def piece(**function: str) -> dict[str, Any]:
    return openai(tool_calls=[{"index": 0, "function": function}])


@pytest.mark.parametrize(
    ("raw", "answer", "calls"),
    [
        (stream("hel", "lo"), "hello", ()),
        (stream({"type": "text-delta", "delta": "hel"}, {"type": "text-delta", "delta": "lo"}), "hello", ()),
        (b'event: token\ndata: {"text": "hi"}\n\n: ping\n\nevent: done\ndata: {}\n\n', "hi", ()),
        (stream({"delta": "x"}, {"type": "done", "response": "hello"}), "hello", ()),
        (stream({"response": "hello", "toolCalls": [{"name": "w", "success": True}]}), "hello", (ToolCall("w", success=True),)),
        (
            stream(
                {"type": "tool_call", "id": "1", "name": "w", "args": WEATHER},
                {"type": "tool_result", "id": "1", "error": None, "durationMs": 20},
                {"type": "text", "text": "cold"},
            ),
            "cold",
            (ToolCall("w", WEATHER, True, 0.02),),
        ),
        (
            stream(
                {"type": "tool_call", "name": "w"},
                {"type": "tool_call", "name": "w"},
                {"type": "tool_result", "name": "w", "success": False},
            ),
            "",
            (ToolCall("w", success=False), ToolCall("w")),
        ),
        (
            stream(piece(name="w", arguments='{"ci'), piece(arguments='ty": "Oslo"}'), openai(content="cold"), "[DONE]"),
            "cold",
            (ToolCall("w", WEATHER),),
        ),
    ],
    ids=["text", "deltas", "names", "whole at the end", "one event", "calls", "results by name", "chat completion"],
)  # fmt: skip
def test_it_puts_a_stream_together(raw, answer, calls):
    found = parse("chat", raw)
    assert (found.answer, calls_of_transcript(found)) == (answer, calls)


RESPONSES_STREAM = (
    {"type": "response.created", "response": {"id": "r", "usage": None}},
    {"type": "response.output_text.delta", "delta": "co"},
    {"type": "response.output_text.delta", "delta": "ld"},
    {"type": "response.output_text.done", "text": "cold"},
    {"type": "response.function_call_arguments.delta", "delta": json.dumps(WEATHER)},
    {"type": "response.output_item.done", "item": RESPONSES["output"][2]},
    {"type": "response.completed", "response": {**RESPONSES, "usage": {"input_tokens": 3}}},
)
MESSAGES_STREAM = (
    {"type": "message_start", "message": {"id": "m", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "cold"}},
    {"type": "content_block_start", "index": 1, "content_block": {**MESSAGES["content"][1], "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"city": '}},
    {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '"Oslo"}'}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"input_tokens": 3}},
    {"type": "message_stop"},
)


@pytest.mark.parametrize("events", [RESPONSES_STREAM, MESSAGES_STREAM], ids=["Responses", "Messages"])
def test_it_puts_the_streams_of_model_providers_together(events):
    found = parse("chat", stream(*events))
    assert (found.answer, calls_of_transcript(found)) == ("cold", (ToolCall("w", WEATHER),))
    assert found.usage == Usage(3, 0)


def test_a_failed_response_is_an_error():
    failed = {"type": "response.failed", "response": {"error": {"message": "overloaded"}}}
    with pytest.raises(UnreadableTranscript, match="overloaded"):
        parse("chat", stream(failed))


@pytest.mark.slow
@pytest.mark.hostile
def test_many_calls_and_results_are_put_together_in_linear_time():
    def events(number):
        many = range(number)
        asked = [{"type": "tool_call", "id": n, "name": "w"} for n in many]
        named = [{"type": "tool_result", "id": n, "success": True} for n in reversed(many)]
        return stream(*asked, *named, *[{"type": "tool_result", "name": "w", "success": True} for _ in many])

    def put_together(given):
        assert all(call.success for call in calls_of_transcript(parse("chat", given)))

    assert_linear_time(put_together, events(5_000), events(20_000))


@pytest.mark.hostile
def test_the_pieces_of_a_call_are_put_together_in_linear_time():
    def pieces(number):
        middle = [piece(arguments="x" * 2000)] * number
        return stream(piece(name="w", arguments='"'), *middle, piece(arguments='"'))

    def put_together(given):
        (call,) = calls_of_transcript(parse("chat", given))
        assert call.name == "w"

    assert_linear_time(put_together, pieces(1_875), pieces(7_500))


def test_a_stream_may_tell_its_usage_and_an_error_after_some_text():
    found = parse(
        "chat", stream({"delta": "hi"}, {"type": "error", "error": "cut"}, {"usage": {"input_tokens": 3}})
    )
    assert (found.answer, found.usage) == ("hi", Usage(3, 0))
    assert Event("error", text="cut") in found.events


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.b[1].c", 1), ("a.b[2]", MISSING), ("a.x.y", MISSING), ("a.b[0]", None), ("k.l", 2)],
)
def test_a_path_leads_into_json(path, found):
    assert get_at_path({"a": {"b": [None, {"c": 1}]}, "k.l": 2}, path) is found


@pytest.mark.parametrize(
    ("value", "path", "result"),
    [
        ({"a": 1}, "b.c", {"a": 1, "b": {"c": "x"}}),
        ({"m": [{"role": "user"}]}, "m[0].content", {"m": [{"role": "user", "content": "x"}]}),
        ({}, "m[1]", {"m": [None, "x"]}),
    ],
)
def test_an_item_is_placed_at_a_path(value, path, result):
    before = json.dumps(value)
    assert place_item(value, path, "x") == result
    assert json.dumps(value) == before


@pytest.mark.parametrize("path", ["", ".", "a..b", "[0]", "a[x]", "a[0"])
def test_an_invalid_path_is_reported(path):
    with pytest.raises(ValueError, match="isn't a path"):
        place_item({}, path, "x")
