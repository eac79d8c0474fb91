"""Gates on the calls of an MCP server: expected, forbidden and no tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import Score, Transcript
from evaluators.tool_use.mcp_calls import mark_calls
from evaluators.tool_use.mcp_record import read_mcp_record
from evaluators.tool_use.tool import McpServer, Tool
from tests.evaluators.grading.gates.gate_samples import gate_of

SERVER = McpServer(name="notes", command="x")
CALLS: list[tuple[str, dict[str, Any], bool]] = [
    ("search", {"query": "milk", "limit": 5}, False),
    ("create", {"title": "Bread"}, True),
    ("create", {"title": "Bread", "place": {"shelf": 2, "row": 1}}, False),
]


def check(gate: dict[str, Any], calls: list[tuple[str, dict[str, Any], bool]]) -> Score:
    entries: list[dict[str, Any]] = []
    for number, (tool, arguments, failed) in enumerate(calls):
        request = {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        entries += [{"number": number, "request": request}]
        entries += [{"number": number, "response": {"result": {"isError": failed}}}]
    reading = {"number": 99, "request": {"method": "resources/read", "params": {"uri": "notes://guide"}}}
    record = read_mcp_record(b"\n".join(json.dumps(each).encode() for each in [*entries, reading]))
    transcript = mark_calls(Transcript(), SERVER, None, record)
    return gate_of.validate_python(gate).check(TrialEvidence(transcript, tool=Tool(mcp=SERVER)))


@pytest.mark.parametrize(
    ("gate", "passed"),
    [
        ({"type": "mcp_called", "tool": "search"}, True),
        ({"type": "mcp_called", "tool": "search", "arguments": {"query": "milk"}}, True),
        ({"type": "mcp_called", "tool": "search", "arguments": {"query": "bread"}}, False),
        ({"type": "mcp_called", "tool": "search", "arguments": {"other": None}}, False),
        ({"type": "mcp_called", "tool": "create", "arguments": {"place": {"shelf": 2}}}, True),
        ({"type": "mcp_called", "tool": "create", "times": 1}, True),
        ({"type": "mcp_called", "tool": "create", "times": 2}, False),
        ({"type": "mcp_called", "tool": "delete"}, False),
        ({"type": "mcp_not_called", "tool": "delete"}, True),
        ({"type": "mcp_not_called", "tool": "search"}, False),
        ({"type": "mcp_not_called"}, False),
    ],
)
def test_gates_read_the_agents_calls(gate, passed):
    assert check(gate, CALLS).passed is passed


def test_a_failed_call_is_no_expected_call_and_a_forbidden_one():
    failed = [("create", {"title": "a"}, True)]
    expected = check({"type": "mcp_called", "tool": "create"}, failed)
    assert (expected.passed, expected.message) == (
        False,
        "Successful calls of `create`: 0 of 1; expected at least 1.",
    )
    assert expected.detail["calls"] == ['create {"title":"a"}']
    assert check({"type": "mcp_not_called", "tool": "create"}, failed).passed is False


def test_a_call_with_an_unknown_end_is_no_success():
    content = b'{"number": 1, "request": {"method": "tools/call", "params": {"name": "create"}}}'
    transcript = mark_calls(Transcript(), SERVER, None, read_mcp_record(content, was_cut=True))
    gate = gate_of.validate_python({"type": "mcp_called", "tool": "create"})
    assert gate.check(TrialEvidence(transcript, tool=Tool(mcp=SERVER))).passed is False


@pytest.mark.parametrize("has_others", [True, False])
@pytest.mark.parametrize(
    ("tool", "passed"), [("create", True), ("notes/create", True), ("memos/create", False)]
)
def test_gates_take_a_tool_with_its_server(has_others, tool, passed):
    content = b"""{"number": 1, "request": {"method": "tools/call", "params": {"name": "create"}}}
{"number": 1, "response": {"result": {}}}"""
    transcript = mark_calls(Transcript(), SERVER, None, read_mcp_record(content), has_others=has_others)
    evidence = TrialEvidence(transcript, tool=Tool(mcp=SERVER))
    assert gate_of.validate_python({"type": "mcp_called", "tool": tool}).check(evidence).passed is passed
    assert (
        gate_of.validate_python({"type": "mcp_not_called", "tool": tool}).check(evidence).passed is not passed
    )


def test_help_is_no_call():
    assert check({"type": "mcp_not_called"}, []).passed is True


def test_without_a_server_nothing_is_decided():
    score = gate_of.validate_python({"type": "mcp_not_called"}).check(TrialEvidence(Transcript()))
    assert (score.passed, score.error) == (
        None,
        "The scenario names no MCP server. Add target.mcp, or use another gate.",
    )
