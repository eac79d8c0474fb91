"""A call whose server asks for input (MCP 2026-07-28) goes on with the request that repeats it."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.tool_use.mcp_record import RecordedRequest, read_mcp_record
from tests.evaluators.tool_use.test_mcp_listings import FAILED, Record, found

ANSWERS = {"inputResponses": {"q": {"action": "accept"}}}
DONE = {"resultType": "complete", "content": []}


def asking(state: str = "") -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": {}, **({"requestState": state} if state else {})}


def put(record: Record, result: Any, *, connection: int = 1, key: str = "a", **more: Any) -> Record:
    params = {"name": "echo", "arguments": {"key": key}, **more}
    return record.ask(connection, "tools/call", params, result)


def ends(record: Record, *, was_cut: bool = False) -> list[tuple[bool, str]]:
    return [(call.ended, call.failure) for call in read_mcp_record(record.content, was_cut=was_cut)]


@pytest.mark.parametrize(("result", "failure"), [(DONE, ""), (FAILED, "is_error")])
def test_the_repeated_request_ends_the_call(result, failure):
    record = put(put(Record(), asking("s1")), asking("s2"), requestState="s1", **ANSWERS)
    record = put(record, result, connection=3, requestState="s2", **ANSWERS)
    assert ends(record) == [(True, failure)]
    (call,) = read_mcp_record(record.content)
    assert call.seconds == pytest.approx(0.3)
    assert found(record) == [("echo", failure)]


@pytest.mark.parametrize("was_cut", [False, True])
def test_a_call_that_is_never_repeated_has_an_unknown_end(was_cut):
    assert ends(put(Record(), asking("s1")), was_cut=was_cut) == [(False, "")]


def test_calls_side_by_side_are_told_apart_by_their_state():
    record = put(put(Record(), asking("s1")), asking("s2"))
    record = put(record, FAILED, requestState="s2", **ANSWERS)
    assert ends(record) == [(False, ""), (True, "is_error")]


def test_a_request_that_repeats_no_call_is_one():
    record = put(put(Record(), asking("s1")), DONE, key="b", requestState="s1", **ANSWERS)
    assert ends(record) == [(False, ""), (True, "")]


def test_a_repeated_prompt_is_one_request():
    asked = {"name": "tidy", "_meta": {}}
    record = Record().ask(1, "prompts/get", asked, asking())
    record = record.ask(1, "prompts/get", {**asked, **ANSWERS}, {"messages": []})
    (call,) = read_mcp_record(record.content)
    assert isinstance(call, RecordedRequest)
    assert (call.tool, call.arguments, call.ended) == ("prompts/get", {"name": "tidy"}, True)
