"""Calls are judged by the tools that the server listed to the agent, as the proxy recorded them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.attempts import call_message
from evaluators.tool_use.calls import pair_calls
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.mcp_calls import mark_calls
from evaluators.tool_use.mcp_record import (
    encode_surfaces,
    find_listings,
    join_surfaces,
    read_mcp_record,
    surface_of,
)
from evaluators.tool_use.tool import McpServer, Tool

SERVER = McpServer(name="nasty", command="server")
BEFORE = surface_of("nasty", {"tools": [{"name": "echo"}]})
FAILED = {"isError": True, "content": [{"type": "text", "text": "no"}]}
SHAPE = {
    "name": "shape",
    "outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
}


class Record:
    """A record of the proxy, written line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def ask(self, connection: int, method: str, params: dict[str, Any], result: Any) -> Record:
        about = {"connection": connection, "number": len(self.lines)}
        self.lines.append(json.dumps({**about, "request": {"method": method, "params": params}}))
        self.lines.append(json.dumps({**about, "seconds": 0.1, "response": {"result": result}}))
        return self

    def list(self, *tools: Any, connection: int = 1, cursor: str = "", more: str = "") -> Record:
        named = [{"name": each} if isinstance(each, str) else each for each in tools]
        page = {"tools": named, **({"nextCursor": more} if more else {})}
        return self.ask(connection, "tools/list", {"cursor": cursor} if cursor else {}, page)

    def call(self, tool: str, result: Any, connection: int = 1, **arguments: Any) -> Record:
        return self.ask(connection, "tools/call", {"name": tool, "arguments": arguments}, result)

    @property
    def content(self) -> bytes:
        return "\n".join(self.lines).encode()


def found(record: Record, *events: Event) -> list[tuple[str, str]]:
    marked = mark_calls(
        Transcript(events=events, source="stream"), SERVER, BEFORE, read_mcp_record(record.content)
    )
    return [
        (each.subcommand or "", each.failure)
        for each in analyse(marked, Tool(mcp=SERVER), completed=True).commands
    ]


def test_a_tool_that_only_the_agent_was_shown_fails_by_its_own_error():
    assert found(Record().list("echo", "ask").call("ask", FAILED)) == [("ask", "is_error")]


def test_a_tool_of_a_later_page_is_known():
    record = Record().list("echo", more="2").list("ask", cursor="2").call("ask", FAILED).call("echo", FAILED)
    assert found(record) == [("ask", "is_error"), ("echo", "is_error")]


def test_a_list_that_changed_counts_from_then_on():
    record = (
        Record().list("echo").call("grown", FAILED).list("grown").call("grown", FAILED).call("echo", FAILED)
    )
    assert found(record) == [("grown", "unknown_tool"), ("grown", "is_error"), ("echo", "unknown_tool")]


def test_each_connection_has_a_list_of_its_own():
    record = Record().list("echo", connection=1).list("other", connection=2)
    record.call("echo", FAILED, 1).call("echo", FAILED, 2).call("other", FAILED, 3)
    assert found(record) == [("echo", "is_error"), ("echo", "unknown_tool"), ("other", "is_error")]


def test_without_a_list_of_its_own_the_one_before_the_run_counts():
    assert found(Record().call("echo", FAILED).call("ask", FAILED)) == [
        ("echo", "is_error"),
        ("ask", "unknown_tool"),
    ]


def test_arguments_are_checked_by_the_schema_that_the_agent_got():
    schema = {"name": "echo", "inputSchema": {"type": "object", "required": ["text"]}}
    record = Record().list(schema).call("echo", FAILED)
    assert found(record) == [("echo", "arguments")]
    shown = join_surfaces(find_listings(record.content))
    assert shown is not None and shown.schema("echo") == schema["inputSchema"]


# fmt: off
ENDS = {
    "claude_code": Event("tool_result", "1", success=False, output="MCP error -32602: Structured content does not match the tool's output schema: data/n must be number"),
    "codex": Event("tool_result", "1", success=True, output={"content": []}),
    "opencode": Event("tool_result", "1", success=False, output="Structured content does not match the tool's output schema"),
}
# fmt: on


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"structuredContent": {"n": "x"}}, "`n` is not number"),
        ({"structuredContent": {}}, "`n` is missing"),
        ({"content": []}, "the result has no structuredContent"),
    ],
)
def test_a_result_that_breaks_the_output_schema_is_the_servers_fault(result, words):
    seen = set()
    for end in ENDS.values():
        record = read_mcp_record(Record().list(SHAPE).call("shape", {"content": [], **result}).content)
        events = (Event("tool_call", "1", "mcp__nasty__shape", input={}), end)
        marked = mark_calls(Transcript(events=events, source="stream"), SERVER, None, record)
        (command,) = analyse(marked, Tool(mcp=SERVER), completed=True).commands
        (call,) = pair_calls(marked.events)
        seen.add((command.failure, command.exit_code, call_message(call)))
    assert seen == {("protocol", 1, f"The server broke its outputSchema: {words}.")}


@pytest.mark.parametrize("result", [{"structuredContent": {"n": 1}}, {"truncated": True}, FAILED])
def test_other_results_do_not_break_it(result):
    expected = "is_error" if result is FAILED else ""
    assert found(Record().list(SHAPE).call("shape", result)) == [("shape", expected)]


def test_an_output_schema_is_no_part_of_what_models_read():
    plain = surface_of("nasty", {"tools": [{"name": "shape"}]})
    shaped = surface_of("nasty", {"tools": [SHAPE]})
    assert encode_surfaces([plain]) == encode_surfaces([shaped]) and plain.tokens == shaped.tokens
