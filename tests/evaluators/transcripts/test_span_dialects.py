"""The five ways in which exporters of OpenTelemetry write an agent's tool calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.model import Usage
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.exposure import opened_paths
from evaluators.transcripts import parse

GIVEN = json.dumps({"command": "./taskmgr list"})


def spans(*attributes: dict[str, Any]) -> bytes:
    listed = [
        {"name": f"span {n}", "spanId": f"s{n}", "startTimeUnixNano": str(10**18 + n), "attributes": each}
        for n, each in enumerate(attributes)
    ]
    return json.dumps(listed).encode()


CALLED = [
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "bash", "arguments": GIVEN}]}
]
ANSWERED = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "Milk"}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
DIALECTS: dict[str, tuple[dict[str, Any], ...]] = {
    "GenAI": (
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "bash",
            "gen_ai.tool.call.arguments": GIVEN,
            "gen_ai.tool.call.result": "Milk",
        },
    ),
    "pydantic-ai": (
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "bash",
            "tool_arguments": GIVEN,
            "tool_response": "Milk",
        },
    ),
    "OpenInference": (
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "bash",
            "tool_call.function.arguments": GIVEN,
            "output.value": "Milk",
        },
    ),
    "Vercel": (
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "bash",
            "ai.toolCall.id": "c",
            "ai.toolCall.args": GIVEN,
            "ai.toolCall.result": "Milk",
        },
    ),
    "traceloop": (
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "bash",
            "traceloop.entity.input": json.dumps({"inputs": {"command": "./taskmgr list"}}),
            "traceloop.entity.output": "Milk",
        },
    ),
    "traceloop's JSON": (
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "bash",
            "traceloop.entity.input": json.dumps({"args": [], "kwargs": {"command": "./taskmgr list"}}),
            "traceloop.entity.output": json.dumps("Milk"),
        },
    ),
    "messages": (
        {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(CALLED)},
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps([*CALLED, *ANSWERED]),
            "gen_ai.output.messages": json.dumps(SAID),
        },
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_and_its_result_are_found(dialect: str) -> None:
    found = parse("otel", spans(*DIALECTS[dialect]))
    [call] = pair_calls(found.events)
    assert (call.event.name, call.event.command) == ("bash", "./taskmgr list")
    assert call.result is not None and call.result.output == "Milk"
    assert found.unknown_events == 0


def test_a_call_inside_messages_says_nothing_of_its_end() -> None:
    found = parse("otel", spans(*DIALECTS["messages"]))
    [call] = pair_calls(found.events)
    assert (call.exit_code, found.answer) == (None, "Done.")


def test_a_call_that_has_a_span_is_not_counted_again_in_messages() -> None:
    tool = {**DIALECTS["GenAI"][0], "gen_ai.tool.call.id": "c"}
    assert len(pair_calls(parse("otel", spans(*DIALECTS["messages"], tool)).events)) == 1


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"exitCode": 3, "stdout": ""}, 3),
        ({"exit_code": 0, "stdout": "Exit code: 4"}, 0),
        ("no\nExit code: 3", 3),
        ("It says Exit code: 3 somewhere", None),
        ({"exitCode": True}, None),
    ],
)
@pytest.mark.parametrize("error", [{}, {"error.type": "ToolError"}], ids=["succeeded", "failed"])
def test_a_commands_end_is_what_its_result_states_whatever_its_span(
    result: Any, code: int | None, error: dict[str, Any]
) -> None:
    tool = {**DIALECTS["GenAI"][0], "gen_ai.tool.call.result": result, **error}
    [call] = pair_calls(parse("otel", spans(tool)).events)
    assert call.exit_code == code


@pytest.mark.parametrize(("stated", "code"), [(2, 2), ("2", 2), (0, 0), ("?", None), (True, None)])
def test_the_exit_code_of_the_process_counts_first(stated: Any, code: int | None) -> None:
    result = {} if code is None else {"gen_ai.tool.call.result": {"exitCode": 7}}
    tool = {**DIALECTS["GenAI"][0], "process.exit.code": stated, **result}
    [call] = pair_calls(parse("otel", spans(tool)).events)
    assert call.exit_code == code


@pytest.mark.parametrize(("error", "code"), [({}, 0), ({"error.type": "ToolError"}, 1)])
def test_a_function_tool_has_its_spans_success(error: dict[str, Any], code: int) -> None:
    tool = {**DIALECTS["GenAI"][0], "gen_ai.tool.name": "lookup", **error}
    [call] = pair_calls(parse("otel", spans(tool)).events)
    assert call.exit_code == code


@pytest.mark.parametrize(
    ("attributes", "loaded"),
    [
        ({"gen_ai.tool.name": "load_skill"}, True),
        ({"gen_ai.tool.name": "load_skill", "error.type": "NotFound"}, False),
        ({"process.exit.code": 2}, True),
    ],
    ids=["loaded", "not loaded", "a command of the skill"],
)
def test_a_skill_that_a_span_names_is_exposure(attributes: dict[str, Any], loaded: bool) -> None:
    tool = {**DIALECTS["GenAI"][0], "gen_ai.skill.name": "notes", **attributes}
    paths = ("skills/notes/SKILL.md", "skills/other/SKILL.md", "skills/notes/help.md")
    assert opened_paths(paths, parse("otel", spans(tool))) == (paths[:1] if loaded else ())


def usage_of(*used: tuple[int, int, int]) -> Usage | None:
    """Return the usage of model calls of one trace, each by input, read from and written to the cache."""
    names = ("input_tokens", "cache_read.input_tokens", "cache_write.input_tokens")
    models = [
        {"gen_ai.operation.name": "chat"}
        | {f"gen_ai.usage.{name}": n for name, n in zip(names, each, strict=True)}
        for each in used
    ]
    return parse("otel", spans(*models)).usage


def test_input_includes_the_cache_unless_a_call_of_the_trace_reads_more_from_it() -> None:
    assert usage_of((300, 40, 25)) == Usage(300, 0, cache_read=40, cache_write=25)
    assert usage_of((100, 5000, 0)) == Usage(5100, 0, cache_read=5000)
    both = usage_of((100, 5000, 0), (300, 40, 25))
    assert both == Usage(100 + 5000 + 300 + 40 + 25, 0, cache_read=5040, cache_write=25)


def test_another_trace_decides_for_itself() -> None:
    [first], [second] = (json.loads(spans({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": n,
                                           "gen_ai.usage.cache_read.input_tokens": 200})) for n in (100, 300))  # fmt: skip
    first["traceId"], second["traceId"], second["spanId"] = "a", "b", "s1"
    assert parse("otel", json.dumps([first, second]).encode()).usage == Usage(600, 0, cache_read=400)


def test_only_a_shells_result_has_an_exit_code() -> None:
    result = json.dumps({"exitCode": 3})
    tool = {**DIALECTS["GenAI"][0], "gen_ai.tool.name": "lookup", "gen_ai.tool.call.result": result}
    [call] = pair_calls(parse("otel", spans(tool)).events)
    assert call.result is not None and call.result.exit_code is None


@pytest.mark.parametrize(
    "model",
    [
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.response.text": "Done.",
            "ai.usage.promptTokens": 5,
            "ai.usage.completionTokens": 2,
        },
        {
            "llm.request.type": "chat",
            "gen_ai.completion.0.content": "Done.",
            "gen_ai.usage.prompt_tokens": 5,
            "gen_ai.usage.completion_tokens": 2,
        },
    ],
    ids=["Vercel", "traceloop"],
)
def test_a_models_answer_and_tokens_are_found(model: dict[str, Any]) -> None:
    found = parse("otel", spans(model))
    assert (found.answer, found.usage) == ("Done.", Usage(5, 2))
