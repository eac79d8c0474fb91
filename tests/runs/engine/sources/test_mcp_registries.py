"""Tool registries from MCP servers, over HTTP and over standard input and output."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.models import Run
from tests.commands.calling import call
from tests.runs.servers import Reply, Request, serving

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.spec("tool-forge", "Registries are read, not executed"),
    pytest.mark.one_database,
]

SERVER = Path(__file__).with_name("tool_server.py").read_text()
TOOLS = [{"name": "count", "description": "Does count."}, {"name": "add", "description": "Does add."}]
CASE = {"id": "one", "input": {"message": "Go."}, "expect": {"responseNonEmpty": True}}
METADATA = {"toolName": "count", "registrySize": 1}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Return a function that runs a case with a registry and returns its run."""
    suite = tmp_path / "count.golden.json"
    suite.write_text(json.dumps({"metadata": METADATA, "cases": [CASE]}))
    targets = tmp_path / "targets.yaml"
    targets.write_text("targets:\n  - {name: agent, provider: mock, response: done}\n")

    def go(registry: str) -> Run:
        call("run_scenarios", str(suite), "--targets", str(targets), "--now", "--tool-registry", registry)
        return Run.objects.get()

    return go


def names(run: Run) -> list[str]:
    assert run.error == ""
    return sorted(run.options["registry"]["tools"])


def mcp(request: Request, *, events: bool) -> Reply:
    """Answer as a server with sessions: `session` names one, and every later message has to name it."""
    if request.method != "POST":
        return Reply({}, status=405)
    message: Any = request.json
    if message["method"] != "initialize" and request.headers.get("mcp-session-id") != "s1":
        return Reply({}, status=400)
    if "id" not in message:
        return Reply(pieces=(), status=202)
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    result = greeting if message["method"] == "initialize" else {"tools": TOOLS}
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    if not events:
        return Reply(answer, headers={"Content-Type": "application/json", "Mcp-Session-Id": "s1"})
    pieces = (
        b": hello\n\n",
        b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/message"}\n\n',
        f"event: message\ndata: {json.dumps(answer)}\n\n".encode(),
    )
    return Reply(
        pieces=pieces, headers={"Content-Type": "text/event-stream; charset=utf-8", "Mcp-Session-Id": "s1"}
    )


@pytest.mark.parametrize("events", [False, True], ids=["JSON", "events"])
@pytest.mark.parametrize("path", ["/mcp", "/tools"], ids=["known by its address", "that takes no GET"])
def test_a_server_over_http_is_asked_with_its_handshake(run: Any, path: str, events: bool) -> None:
    with serving(lambda request: mcp(request, events=events)) as server:
        assert names(run(server.url + path)) == ["add", "count"]
    methods = [request.json["method"] for request in server.requests if request.method == "POST"]
    assert methods == ["initialize", "notifications/initialized", "tools/list"]


def test_an_address_that_just_holds_a_registry_is_read(run: Any) -> None:
    with serving(Reply({"tools": TOOLS})) as server:
        assert names(run(server.url + "/tools.json")) == ["add", "count"]
    assert [request.method for request in server.requests] == ["GET"]


def test_a_server_that_knows_tools_only_needs_no_handshake(run: Any) -> None:
    def answer(request: Request) -> Reply:
        message: Any = request.json
        body = {"error": {"code": -32601, "message": "Method not found"}}
        if message["method"] == "tools/list":
            body = {"result": {"tools": TOOLS}}
        return Reply({"jsonrpc": "2.0", "id": message["id"], **body})

    with serving(answer) as server:
        assert names(run(server.url + "/mcp")) == ["add", "count"]


def test_a_stdio_server_is_read_page_by_page(run: Any) -> None:
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(SERVER)}"
    assert names(run(command)) == ["add", "count"]


def test_a_command_that_prints_a_registry_is_read(run: Any) -> None:
    assert names(run(f"echo {shlex.quote(json.dumps(TOOLS, indent=1))}")) == ["add", "count"]


@pytest.mark.parametrize(
    ("registry", "sentence"),
    [
        (
            f"{shlex.quote(sys.executable)} -c {shlex.quote(SERVER)} --closed",
            "The MCP server returned no tools: the server refused: The shop is closed.",
        ),
        ("echo broken >&2; exit 3", "ended with exit code 3: broken"),
        ("echo nothing", "printed no JSON"),
    ],
    ids=["refuses", "fails", "prints something else"],
)
def test_a_command_without_tools_spends_no_trial(run: Any, registry: str, sentence: str) -> None:
    stored = run(registry)
    assert (stored.outcome, stored.passed) == ("error", 0)
    assert sentence in stored.error
    assert registry in stored.error


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Reply({}, status=500), "500"),
        (
            Reply({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "No entry"}}),
            "the server refused: No entry.",
        ),
        (Reply(pieces=(b"<html>",)), "the response is not JSON"),
        (Reply({"id": 7, "result": {}}), "no response to initialize"),
    ],
    ids=["status", "error", "no JSON", "another response"],
)
def test_an_address_without_tools_spends_no_trial(run: Any, reply: Reply, sentence: str) -> None:
    with serving(reply) as server:
        stored = run(server.url + "/mcp")
    assert (stored.outcome, stored.passed) == ("error", 0)
    assert sentence in stored.error
