"""Servers and agents of MCP 2026-07-28, which has no sessions, beside those of earlier revisions."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing
from typing import Any

import httpx
import pytest

from evaluators.tool_use.mcp_record import read_mcp_record
from runs.engine.mcp import mcp_stdio
from runs.engine.mcp.mcp_face import Upstream
from runs.engine.mcp.mcp_http import fetch_tools
from runs.engine.mcp.mcp_messages import Record
from runs.engine.mcp.mcp_probe import probe_address
from runs.models import Trial
from tests.runs.engine.mcp.notes import commands, finished, suite
from tests.runs.engine.mcp.proxies import line_of, over_http, running
from tests.runs.engine.mcp.servers import ERAS_SERVER, serving_eras

pytestmark = pytest.mark.one_database

IN_A_TRIAL = f"command: {sys.executable} eras_server.py later"
ENVELOPE = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}


def command(mode: str) -> str:
    return f"{sys.executable} {ERAS_SERVER} {mode}"


def request(method: str, id: int = 7, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**ENVELOPE, **params}}


def list_tools(server: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-IS", mcp_stdio.__file__, server]
    return subprocess.run(words, capture_output=True, text=True, timeout=20)


@pytest.mark.parametrize("mode", ["later", "both", "locked", "ends"])
def test_a_server_of_either_era_lists_its_tools_on_standard_output(mode):
    found = json.loads(list_tools(command(mode)).stdout)
    assert [tool["name"] for tool in found["tools"]] == ["put"]
    assert found["serverInfo"] == {"name": "shelves", "version": "3"}
    assert found["instructions"].endswith(" words.")


@pytest.mark.parametrize("mode", ["later", "both"])
def test_a_server_of_either_era_lists_its_tools_over_http(tmp_path, mode):
    with serving_eras(tmp_path, mode) as url, httpx.Client(trust_env=False) as http:
        probe_address(Upstream(url, {}), 5.0, mcp_stdio.HELLO)
        found = fetch_tools(http, url)
    assert [tool["name"] for tool in found["tools"]] == ["put"]
    assert found["serverInfo"] == {"name": "shelves", "version": "3"}


def test_a_server_of_another_revision_is_named_at_once(tmp_path):
    began = time.monotonic()
    ended = list_tools(command("next"))
    assert time.monotonic() - began < 5, "it waited for the server's end, which doesn't come"
    why = "it speaks MCP 2027-01-01, and evalhub 2025-06-18 and 2026-07-28"
    assert (ended.returncode, ended.stderr) == (1, f"The MCP server returned no tools: {why}.\n")
    with (
        serving_eras(tmp_path, "next") as url,
        httpx.Client(trust_env=False) as http,
        pytest.raises(mcp_stdio.NoAnswer, match=why),
    ):
        fetch_tools(http, url)


def test_a_server_that_does_not_start_is_started_once(tmp_path):
    ended = list_tools(f"echo began >> {tmp_path}/starts; no-such-server")
    assert ended.returncode == 127
    assert (tmp_path / "starts").read_text() == "began\n"


@pytest.mark.parametrize("mode", ["later", "both", "locked", "ends"])
def test_the_process_that_waits_for_the_agent_has_seen_no_message(tmp_path, mode):
    with running(tmp_path, command=command(mode)) as proxy:
        assert proxy.wait() == ""
        connection = proxy.connect()
        connection.send(line_of(request("server/discover")))
        assert json.loads(connection.read())["result"]["supportedVersions"] == ["2026-07-28"]


CLIENT = """
import http.client, json, sys
address = sys.argv[1].split("/")[2]
def ask(method, headers, **params):
    params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    connection = http.client.HTTPConnection(address)
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    names = {"Mcp-Method": method, "Accept": "application/json, text/event-stream", **headers}
    connection.request("POST", "/mcp", json.dumps(message), names)
    answer = connection.getresponse()
    print(answer.status, answer.read().decode())
put = {"name": "put", "arguments": {"shelf": "home"}}
ask("tools/call", {"Mcp-Name": "put", "Mcp-Param-Shelf": "home"}, **put)
ask("tools/call", {"Mcp-Name": "put"}, **put)
ask("tasks/list", {})
ask("subscriptions/listen", {}, notifications={})
"""


def test_headers_and_errors_pass(tmp_path):
    with serving_eras(tmp_path, "later") as url:
        ended, recorded = over_http(tmp_path, url, CLIENT)
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("200 ") and "put on home" in lines[0]
    assert lines[1].startswith("400 ") and "-32020" in lines[1]
    assert lines[2].startswith("404 ") and "-32601" in lines[2]
    assert lines[3].startswith("200 data: ") and "502" not in ended.stdout
    assert [(call.tool, call.failure) for call in recorded] == [("put", ""), ("put", "protocol")]


def test_the_end_of_a_subscription_is_recorded_as_no_error(tmp_path):
    server = "read -r line; exit 0"
    with running(tmp_path, command=server) as proxy:
        connection = proxy.connect()
        connection.send(line_of(request("subscriptions/listen")))
        assert json.loads(connection.read())["error"]["code"] == -32000, "the agent must know"
        record = proxy.end()
    assert [sorted(each) for each in record] == [["connection", "number", "request", "time"]]


def test_instructions_are_replaced_in_either_era(tmp_path):
    descriptions = {"instructions": "Other words."}
    with running(tmp_path, command=command("both"), descriptions=descriptions) as proxy:
        for asked in (INITIALIZE, request("server/discover")):
            connection = proxy.connect()
            connection.send(line_of(asked))
            assert json.loads(connection.read())["result"]["instructions"] == "Other words."


def test_a_call_that_is_repeated_with_input_is_one(tmp_path):
    call = {"name": "put", "arguments": {"shelf": "which"}}
    with running(tmp_path, command=command("later")) as proxy:
        connection = proxy.connect()
        for id, more in ((7, {}), (8, {"requestState": "s", "inputResponses": {"q": {"action": "accept"}}})):
            connection.send(line_of(request("tools/call", id, **call, **more)))
            connection.read()
        (recorded,) = read_mcp_record(b"".join(map(line_of, proxy.end())))
    assert (recorded.arguments, recorded.failure, recorded.ended) == ({"shelf": "which"}, "", True)
    assert recorded.output["content"][0]["text"] == "put on which"


def describe(control: Any) -> str:
    control.socket.settimeout(10)
    return str(json.loads(control.read())["disagreement"])


def test_no_common_revision_is_said_a_second_after_the_refusal(tmp_path):
    with running(tmp_path, command=command("later")) as proxy:
        assert proxy.wait() == ""
        connection = proxy.connect()
        connection.send(line_of(INITIALIZE))
        assert json.loads(connection.read())["error"]["code"] == -32022
        began = time.monotonic()
        sentence = describe(proxy.control)
    assert 0.7 < time.monotonic() - began < 5
    assert "the agent asked for 2025-11-25, and the server speaks 2026-07-28." in sentence


def test_a_server_that_ends_at_the_first_message_is_said(tmp_path):
    with running(tmp_path, command=command("ends")) as proxy:
        assert proxy.wait() == ""
        proxy.connect().send(line_of(INITIALIZE))
        assert "the agent asked for 2025-11-25, and the server gave no response." in describe(proxy.control)


@pytest.mark.slow
def test_an_agent_that_tries_the_other_revision_in_time_is_let_be(tmp_path):
    with running(tmp_path, command=command("later")) as proxy:
        assert proxy.wait() == ""
        connection = proxy.connect()
        for asked in (INITIALIZE, request("server/discover")):
            connection.send(line_of(asked))
            connection.read()
        time.sleep(1.5)
        record = proxy.end()
        assert proxy.control.read() == b"", "nothing is said"
    assert len(record) == 4


@pytest.mark.django_db(transaction=True)
def test_a_trial_without_a_common_revision_is_an_error(project):
    version = suite(project, IN_A_TRIAL, [["sleep", 100]], gates=" []")
    began = time.monotonic()
    trial = Trial.objects.get(run=finished(version))
    assert (trial.run.error, trial.outcome, trial.error_kind) == ("", "error", "setup")
    assert "share no protocol revision" in trial.error and "speaks 2026-07-28" in trial.error
    assert time.monotonic() - began < 60


HAND_WRITTEN = """
import json, os, subprocess, sys, time
from pathlib import Path
(server,) = json.loads(Path(os.environ["LLM_TOOL_TEST_MCP_CONFIG"]).read_text())["mcpServers"].values()
pipe = subprocess.PIPE
with subprocess.Popen([server["command"], *server["args"]], stdin=pipe, stdout=pipe, text=True) as process:
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}) + "\\n")
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(100)
"""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_agent_that_works_on_without_the_server_is_ended(project):
    version = suite(project, IN_A_TRIAL, gates=" []", agent=HAND_WRITTEN)
    trial = Trial.objects.get(run=finished(version, timeout_seconds=90.0))
    assert (trial.outcome, trial.error_kind, trial.timed_out) == ("error", "setup", False)
    assert commands(trial) == []


def test_a_long_call_that_is_repeated_with_input_is_one(tmp_path):
    asking = {"resultType": "input_required", "requestState": "s", "inputRequests": {"q": "x" * 250_000}}
    params = {"name": "put", "arguments": {"shelf": "x" * 250_000}}
    again = {**params, "requestState": "s", "inputResponses": {"q": {}}}
    with closing(Record(str(tmp_path / "record"), {})) as record:
        for asked, result in ((params, asking), (again, {"resultType": "complete", "content": []})):
            record.record_request(line_of(request("tools/call", **asked)), 1)
            record.record_response(line_of({"id": 7, "result": result}), 1)
    (call,) = read_mcp_record((tmp_path / "record").read_bytes())
    assert (call.ended, call.failure) == (True, "")
