"""Tools of MCP servers by `SERVER/TOOL`, as each agent offers them."""

from __future__ import annotations

from typing import Any

import pytest

from runs.targets.model_server.wire import read_conversation

pytestmark = pytest.mark.one_database


def codex(*tools: str) -> dict[str, Any]:
    members = [{"type": "function", "name": each} for each in tools]
    return {"input": [], "tools": [{"type": "namespace", "name": "mcp__my_notes", "tools": members}]}


def plain(*tools: str) -> dict[str, Any]:
    return {"messages": [], "tools": [{"type": "function", "function": {"name": each}} for each in tools]}


@pytest.mark.parametrize(
    ("body", "tool", "spelled"),
    [
        (codex("get_item", "put"), "my-notes/get.item", ("get_item", "mcp__my_notes")),
        (codex("get_item", "put"), "my-notes/get-item", ("get_item", "mcp__my_notes")),
        (codex("put"), "my-notes/no.such-tool", ("no_such_tool", "mcp__my_notes")),
        (plain("mcp__my-notes__get_item"), "my-notes/get.item", ("mcp__my-notes__get_item", "")),
        (plain("mcp__my-notes__a.b", "mcp__my-notes__a_b"), "my-notes/a_b", ("mcp__my-notes__a_b", "")),
        (plain("Bash"), "my-notes/get.item", ("mcp__my-notes__get_item", "")),
        (plain("my-notes_get_item"), "my-notes/get.item", ("my-notes_get_item", "")),
        (plain("my-notes_put"), "my-notes/no.tool", ("my-notes_no_tool", "")),
        (plain("bash"), "mcp__my-notes__get.item", ("mcp__my-notes__get.item", "")),
    ],
)
def test_a_tool_is_spelled_as_the_agent_does(body, tool, spelled):
    assert read_conversation(body).spelled(tool) == spelled
