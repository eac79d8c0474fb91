"""Servers at an address as people have them: with headers and redirects, or none at all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from runs.engine.mcp.mcp_face import Upstream
from runs.engine.mcp.mcp_probe import probe_address
from runs.models import Artifact, Trial
from tests.kept_files import path_of
from tests.runs.engine.mcp.notes import commands, finished, suite
from tests.runs.engine.mcp.proxies import over_http
from tests.runs.engine.mcp.servers import serving as serving_notes
from tests.runs.servers import Reply, Request, serving

pytestmark = pytest.mark.one_database

CALLS: list[list[Any]] = [["search", {"query": "milk"}], ["prompt", "tidy"], ["create", {"titel": "Bread"}]]
FOUND = [("search", False, ""), ("help", True, ""), ("create", False, "arguments")]
GATE = "\n    - {type: mcp_called, tool: search}"
SECRET = "tk-0123456789-secret"


@pytest.mark.django_db(transaction=True)
def test_an_agent_reaches_a_server_that_redirects(project, tmp_path):
    with serving_notes(tmp_path) as url:
        trial = Trial.objects.get(run=finished(suite(project, f"url: {url}/, transport: http", CALLS, GATE)))
    assert (trial.run.error, trial.error, trial.outcome, commands(trial)) == ("", "", "pass", FOUND)


def mcp(request: Request) -> Reply:
    """A server that asks for a token and repeats it in its results."""
    if request.headers.get("authorization") != f"Bearer {SECRET}":
        return Reply({}, status=401)
    if request.method != "POST":
        return Reply({}, status=405)
    asked = json.loads(request.body)
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "n", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": f"for {SECRET}"}]},
    }
    if "id" not in asked:
        return Reply(status=202)
    reply = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
    return Reply(reply, headers={"Content-Type": "application/json"})


HEADERS = "headers: {Authorization: 'Bearer ${{ NOTES_TOKEN }}'}"


@pytest.mark.django_db(transaction=True)
def test_headers_reach_the_server_and_are_masked(project, monkeypatch, settings):
    settings.ENV_ALLOW = [f"{project.slug}:NOTES_TOKEN"]
    monkeypatch.setenv("NOTES_TOKEN", SECRET)
    with serving(mcp) as server:
        run = finished(suite(project, f"url: {server.url}/mcp, {HEADERS}", CALLS[:1], GATE))
    trial = Trial.objects.get(run=run)
    assert (run.error, trial.error, trial.outcome) == ("", "", "pass")
    assert {each.method for each in server.requests} >= {"POST"}
    kept = path_of(Artifact.objects.get(trial=trial, name="mcp").sha256).read_bytes()
    assert SECRET.encode() not in kept and b"for [REDACTED]" in kept
    assert SECRET not in str(trial.transcript.unpack().text)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_set", [True, False])
def test_a_variable_that_the_project_may_not_use_is_named(project, monkeypatch, settings, is_set):
    settings.ENV_ALLOW = []
    if is_set:
        monkeypatch.setenv("NOTES_TOKEN", SECRET)
    run = finished(suite(project, f"url: http://127.0.0.1:1/mcp, {HEADERS}", CALLS[:1], GATE))
    assert "target.mcp.headers needs the variable NOTES_TOKEN" in run.error and SECRET not in run.error


def redirecting(request: Request) -> Reply:
    return Reply({}, status=307, headers={"Location": "http://other.invalid/mcp"})


def page(request: Request) -> Reply:
    return Reply(pieces=(b"<html></html>",), headers={"Content-Type": "text/html; charset=utf-8"})


def status(code: int) -> Callable[[Request], Reply]:
    return lambda request: Reply({}, status=code)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (redirecting, "it redirects to http://other.invalid/mcp, which is another origin. Write that address"),
        (page, "a web page answers there (text/html), no MCP server"),
        (status(401), "it asks for a login (HTTP status 401). Give it with target.mcp.headers"),
        (status(404), "it has nothing at this path (HTTP status 404)"),
        (lambda request: Reply({"tools": []}, headers={"Content-Type": "application/json"}), "no response to initialize"),
        (lambda request: Reply({}, headers={"Content-Type": "image/png"}), "it answers with image/png"),
    ],
    ids=["elsewhere", "page", "login", "nothing", "JSON", "picture"],
)  # fmt: skip
def test_an_address_that_cannot_be_used_says_what_it_is(project, answer, why):
    with serving(answer) as server:
        run = finished(suite(project, f"url: {server.url}/mcp", CALLS, GATE))
    assert f"{server.url}/mcp: the tools of the MCP server 'notes' could not be fetched: {why}" in run.error
    assert not Trial.objects.filter(run=run).exclude(state="cancelled").exists()


KEPT = """
import http.client, sys, time
connection = http.client.HTTPConnection(sys.argv[1].split("/")[2])
seconds = []
for number in range(40):
    began = time.monotonic()
    connection.request("POST", "/mcp", '{"jsonrpc": "2.0", "id": %d, "method": "ping"}' % number)
    connection.getresponse().read()
    seconds.append(time.monotonic() - began)
print(min(seconds))
"""


def test_calls_on_a_connection_that_is_kept_do_not_wait(tmp_path):
    answer = Reply({"jsonrpc": "2.0", "result": {}}, headers={"Content-Type": "application/json"})
    with serving(answer) as server:
        ended, _ = over_http(tmp_path, f"{server.url}/mcp", KEPT)
    # An acknowledgement may be delayed by 40 ms, that of every call.
    assert float(ended.stdout) < 0.03


def test_a_server_that_starts_late_is_waited_for():
    began = time.monotonic()

    def late(request: Request) -> Reply:
        if time.monotonic() - began < 1:
            return Reply({}, status=503)
        return Reply(
            {"jsonrpc": "2.0", "id": "evalhub", "result": {}}, headers={"Content-Type": "application/json"}
        )

    with serving(late) as server:
        probe_address(Upstream(f"{server.url}/mcp", {}), 10.0, {})
