"""Answers of model and MCP servers that are nested too deep to decode."""

from __future__ import annotations

from types import SimpleNamespace

import httpx
import pytest

from runs.engine.mcp.mcp_http import fetch_tools
from runs.engine.mcp.mcp_stdio import NoAnswer
from runs.targets.language_models.batches import parse_json_lines
from runs.targets.language_models.completion import calls_of

pytestmark = pytest.mark.one_database

DEEP = "[" * 100_000


def test_a_nested_line_of_a_batch_is_left_out():
    lines = f'{{"custom_id": "1"}}\n{DEEP}\n{{"custom_id": "2"}}'
    assert [row["custom_id"] for row in parse_json_lines(lines.encode())] == ["1", "2"]


def test_nested_arguments_of_a_call_stay_text():
    notes: list[str] = []
    found = SimpleNamespace(id="1", function=SimpleNamespace(name="x", arguments=DEEP))
    assert calls_of([found], notes)[0].input == {"arguments": DEEP}
    assert "a JSON object" in notes[0]


def test_a_nested_response_of_an_mcp_server_is_none():
    answer = httpx.MockTransport(
        lambda _: httpx.Response(200, text=DEEP, headers={"content-type": "application/json"})
    )
    with httpx.Client(transport=answer) as http, pytest.raises(NoAnswer, match="not JSON"):
        fetch_tools(http, "http://server.test/mcp")
