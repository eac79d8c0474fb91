"""The proxy alone, with servers that misbehave."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from evaluators.mcp_record import read_record
from runs.sources import mcp_proxy
from tests.runs.servers import Reply, serving

ASKED = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "search", "arguments": {"a": 1}},
}


def proxy(tmp_path: Path, agent: list[str] | None = None, stdin: str = "", **settings: Any) -> Any:
    """Run the proxy to its end; return the process and the record."""
    words = [*command_of(tmp_path, **settings), *(["--", *agent] if agent else [])]
    ended = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=30)
    record = tmp_path / "record.jsonl"
    return ended, read_record(record.read_bytes()) if record.exists() else ()


def command_of(tmp_path: Path, **settings: Any) -> list[str]:
    record, config, file = (tmp_path / name for name in ("record.jsonl", "config.json", "settings.json"))
    config.write_text("{}")
    file.write_text(json.dumps({"record": str(record), "config": str(config), **settings}))
    return [sys.executable, "-IS", mcp_proxy.__file__, str(file)]


def answering(body: str) -> str:
    """A server that answers one line with this shell code, which has the line in $line."""
    return f"read -r line; {body}"


@pytest.mark.parametrize(
    ("server", "failure", "seen"),
    [
        (answering('echo not JSON; echo \'{"id": 7, "result": {"content": []}}\''), "", '"result"'),
        (answering('echo \'{"id": 7, "error": {"code": -32602, "message": "no"}}\''), "protocol", "-32602"),
        (answering("exit 3"), "protocol", "The server ended before its response."),
        ("no-such-server", "protocol", "The server"),
    ],
    ids=["prints other lines", "answers with an error", "ends", "does not start"],
)
def test_the_agent_gets_an_answer_whatever_the_server_does(tmp_path, server, failure, seen):
    ended, (call,) = proxy(tmp_path, stdin=json.dumps(ASKED) + "\n", command=server)
    assert (call.tool, call.arguments, call.failure, call.ended) == ("search", {"a": 1}, failure, True)
    assert call.seconds is not None and seen in ended.stdout
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [7]


def test_two_threads_never_answer_the_same_request(tmp_path):
    with (
        closing(mcp_proxy.Record(str(tmp_path / "record.jsonl"), {})) as record,
        ThreadPoolExecutor(2) as threads,
    ):
        for _ in range(20):
            for number in range(200):
                record.requested({"jsonrpc": "2.0", "id": number, "method": "tools/call"})
            both = Barrier(2)

            def give_up(both: Barrier = both) -> list[dict[str, Any]]:
                both.wait()
                return record.abandoned("The server has ended.")

            answered = [threads.submit(give_up), threads.submit(give_up)]
            assert sorted(each["id"] for one in answered for each in one.result()) == list(range(200))


def test_a_request_is_answered_after_the_server_went_silent(tmp_path):
    hello = json.dumps({"jsonrpc": "2.0", "id": 6, "result": {}})
    command = command_of(tmp_path, command=f"read -r line; echo '{hello}'; exec >&-; cat >/dev/null")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        for number in (6, 7):
            running.stdin.write(json.dumps({**ASKED, "id": number}) + "\n")  # type: ignore[union-attr]
            running.stdin.flush()  # type: ignore[union-attr]
            assert json.loads(running.stdout.readline())["id"] == number  # type: ignore[union-attr]
            time.sleep(0.5)
        running.stdin.close()  # type: ignore[union-attr]


def test_a_long_result_is_passed_on_and_recorded_in_short(tmp_path):
    code = "import json; input(); print(json.dumps({'id': 7, 'result': {'isError': True, 'content': 'x' * 300_000}}))"
    ended, (call,) = proxy(tmp_path, stdin=json.dumps(ASKED) + "\n", command=f'{sys.executable} -c "{code}"')
    assert len(ended.stdout) > 300_000
    assert (call.failure, call.output) == ("is_error", {"isError": True, "truncated": True})


CLIENT = f"""
import http.client, json, sys
connection = http.client.HTTPConnection(sys.argv[1].split("/")[2])
connection.request("POST", "/mcp", {json.dumps(json.dumps(ASKED))}, {{"content-type": "application/json"}})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
connection.request("GET", "/.well-known/oauth-protected-resource")
print(connection.getresponse().status)
sys.exit(5)
"""


def over_http(tmp_path: Path, url: str, **settings: Any) -> Any:
    return proxy(tmp_path, [sys.executable, "-c", CLIENT, mcp_proxy.MCP_ADDRESS], url=url, **settings)


@pytest.mark.parametrize("stream", [False, True], ids=["JSON", "events"])
def test_http_answers_are_recorded_and_passed_on(tmp_path, stream):
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"content": [], "isError": True}}
    pieces = (f": hello\n\nevent: message\ndata: {json.dumps(answer)}\n\n".encode(),) if stream else None
    headers = {"Content-Type": "text/event-stream"} if stream else {}
    with serving(Reply(answer, pieces=pieces, headers=headers)) as server:
        ended, (call,) = over_http(tmp_path, f"{server.url}/mcp?key=1")
    assert (call.failure, call.ended) == ("is_error", True)
    assert server.requests[0].path == "/mcp?key=1"
    assert '"isError": true' in ended.stdout and ended.stdout.endswith("404\n")
    assert ended.returncode == 5


def test_a_server_that_cannot_be_reached_is_a_protocol_failure(tmp_path):
    ended, (call,) = over_http(tmp_path, "http://127.0.0.1:1/mcp")
    assert call.failure == "protocol"
    assert "can't be reached" in ended.stdout and ended.stdout.startswith(str(http.client.BAD_GATEWAY.value))
