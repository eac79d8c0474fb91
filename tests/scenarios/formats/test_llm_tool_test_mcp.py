"""An MCP server at an address in a scenario: its headers and its transport."""

from __future__ import annotations

import pytest

from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError

SCENARIO = """name: notes
target:
  mcp:
    name: notes
    url: https://notes.example/mcp
{more}
task: Note it.
gates: [{{type: mcp_called, tool: put}}]
"""


def parsed(more: str):
    return parse_files({"notes.yaml": SCENARIO.format(more=more).encode()}, name="tasks")


def test_headers_and_transport_are_read():
    more = "    headers: {Authorization: 'Bearer ${{ TOKEN }}', X-Team: 7}\n    transport: http"
    (found,) = parsed(more)
    (spec,) = found.scenarios
    assert spec.criteria.tool is not None and spec.criteria.tool.mcp is not None
    server = spec.criteria.tool.mcp
    assert (server.headers, server.transport) == (
        {"Authorization": "Bearer ${{ TOKEN }}", "X-Team": "7"},
        "http",
    )


@pytest.mark.parametrize(
    ("more", "where", "sentence", "id"),
    [
        ("    transport: sse", "target.mcp.transport", "http", "format/unknown-value"),
        ("    headers: {X-Api-Key: hunter2}", "target.mcp.headers.X-Api-Key", "Write X-Api-Key: ${{ X_API_KEY }} and set", "format/literal-secret"),
        ("    headers: {Authorization: Bearer abcdefgh12345678}", "target.mcp.headers.Authorization", "Write Authorization: Bearer ${{ TOKEN }} and set", "format/literal-secret"),
    ],
)  # fmt: skip
def test_it_refuses(more, where, sentence, id):
    with pytest.raises(ScenarioFileError) as caught:
        parsed(more)
    (problem,) = [each for each in caught.value.problems if not each.lint]
    assert (problem.where, problem.id) == (where, id)
    assert sentence in f"{problem.what} {problem.fix}"
