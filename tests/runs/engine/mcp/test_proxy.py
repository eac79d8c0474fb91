"""The proxy alone, with servers that misbehave."""

from __future__ import annotations

import http.client
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from evaluators.tool_use.mcp_record import read_mcp_record
from runs.engine.mcp import mcp_messages, mcp_proxy
from tests.runs.engine.mcp.proxies import ASKED, asked, line_of, over_http, running
from tests.runs.servers import Reply, serving

pytestmark = pytest.mark.one_database


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
    with running(tmp_path, command=server) as proxy:
        connection = proxy.connect()
        connection.send(line_of(ASKED))
        answer = next(line for line in connection.lines if b'"id"' in line)
        proxy.end()
    (call,) = read_mcp_record((tmp_path / "server" / mcp_proxy.RECORD).read_bytes())
    assert (call.tool, call.arguments, call.failure, call.ended) == ("search", {"a": 1}, failure, True)
    assert call.seconds is not None and seen in answer.decode() and json.loads(answer)["id"] == 7


def test_two_threads_never_answer_the_same_request(tmp_path):
    with (
        closing(mcp_messages.Record(str(tmp_path / "record.jsonl"), {})) as record,
        ThreadPoolExecutor(2) as threads,
    ):
        for _ in range(20):
            for number in range(200):
                record.record_request(line_of({"jsonrpc": "2.0", "id": number, "method": "tools/call"}), 1)
            both = Barrier(2)

            def give_up(both: Barrier = both) -> list[bytes]:
                both.wait()
                return record.abandon("The server has ended.", 1)

            answered = [threads.submit(give_up), threads.submit(give_up)]
            ids = [json.loads(each)["id"] for one in answered for each in one.result()]
            assert sorted(ids) == list(range(200))


def test_a_request_is_answered_after_the_server_went_silent(tmp_path):
    hello = json.dumps({"jsonrpc": "2.0", "id": 6, "result": {}})
    command = f"read -r line; echo '{hello}'; exec >&-; cat >/dev/null"
    with running(tmp_path, command=command) as proxy:
        connection = proxy.connect()
        for number in (6, 7):
            connection.send(line_of({**ASKED, "id": number}))
            assert json.loads(connection.read())["id"] == number
            time.sleep(0.5)


def test_a_long_result_is_passed_on_and_recorded_in_short(tmp_path):
    code = "import json; input(); print(json.dumps({'id': 7, 'result': {'isError': True, 'content': 'x' * 300_000}}))"
    (came,), (call,) = asked(tmp_path, line_of(ASKED), command=f'{sys.executable} -c "{code}"')
    assert len(came) > 300_000
    assert (call.failure, call.output) == ("is_error", {"isError": True, "truncated": True})


def test_a_long_request_keeps_its_name_and_counts_once(tmp_path):
    long = {
        **ASKED,
        "params": {"name": "store", "arguments": {"content": "x" * 250_000}, "_meta": {"callId": "c1"}},
    }
    (came,), (call,) = asked(tmp_path, line_of(long), command=answering('echo \'{"id": 7, "result": {}}\''))
    assert came and (call.tool, call.arguments, call.id, call.ended) == ("store", None, "c1", True)


@pytest.mark.parametrize(
    ("result", "unread"),
    [
        (b'{"d": ' + b"[" * 3000 + b"]" * 3000 + b"}", True),
        (b'{"d": 1e400, "e": NaN}', False),
        (b'{"text": "\xff\xfe"}', True),
        (b'{"text": "' + b"x" * (50 << 20) + b'"}', True),
        (b'{"isError": true, "text": "\xff"}', True),
    ],
    ids=["deep", "numbers that no float holds", "no UTF-8", "50 MB", "an error that isn't UTF-8"],
)
def test_results_are_passed_on_as_they_came(tmp_path, result, unread):
    answer = b'{"jsonrpc":"2.0",  "id":7,"result":' + result + b"}\n"
    (tmp_path / "answer").write_bytes(answer)
    began = time.monotonic()
    second = line_of({**ASKED, "id": 8})
    command = f'read -r line; cat {tmp_path}/answer; read -r line; echo \'{{"id": 8, "result": {{}}}}\''
    came, calls = asked(tmp_path, line_of(ASKED), second, command=command)
    assert came[0] == answer and json.loads(came[1])["id"] == 8
    failure = "is_error" if b"isError" in result else ""
    assert [(call.ended, call.failure) for call in calls] == [(True, failure), (True, "")]
    record = (tmp_path / "server" / mcp_proxy.RECORD).read_bytes()
    assert (f'"unread": {len(answer)}'.encode() in record) == unread
    assert time.monotonic() - began < 15


def test_each_connection_has_a_server_of_its_own(tmp_path):
    command = 'while read -r line; do echo \'{"id": 7, "result": {"pid": "\'$$\'"}}\'; done'
    with running(tmp_path, command=command) as proxy:
        connections = [proxy.connect() for _ in range(2)]
        answers = []
        for connection in connections:
            connection.send(line_of(ASKED))
            answers.append(json.loads(connection.read())["result"]["pid"])
        record = proxy.end()
    assert len(set(answers)) == 2
    calls = read_mcp_record(b"".join(line_of(each) for each in record))
    assert [call.output for call in calls] == [{"pid": pid} for pid in answers]


SLOW = """import json, sys, time
time.sleep(1)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"method": asked["method"]}}), flush=True)
"""


def test_the_agent_gets_a_server_that_has_started(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    with running(tmp_path, command=f"{sys.executable} {tmp_path}/slow.py") as proxy:
        assert proxy.wait() == ""
        connection, began = proxy.connect(), time.monotonic()
        connection.send(line_of({**ASKED, "method": "initialize"}))
        assert json.loads(connection.read())["result"] == {"method": "initialize"}
        assert time.monotonic() - began < 3
        record = proxy.end()
    assert [each["connection"] for each in record] == [1, 1], "what evalhub asks isn't a call"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo boom >&2; exit 7", "it ended with exit code 7"),
        ("cat > /dev/null", "it didn't answer within 1 s"),
        ("no-such-server", "it ended with exit code 127"),
    ],
)
def test_a_server_that_does_not_come_up_is_no_call(tmp_path, command, problem):
    with running(tmp_path, command=command) as proxy:
        assert proxy.wait(1.0) == problem
        assert proxy.end() == []


def test_a_call_that_the_agent_gives_up_failed_whatever_comes_later(tmp_path):
    given_up = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    command = 'read -r a; read -r b; sleep 0.3; echo \'{"id": 7, "result": {}}\'; cat >/dev/null'
    with running(tmp_path, command=command) as proxy:
        connection = proxy.connect()
        connection.send(line_of(ASKED), line_of(given_up))
        assert json.loads(connection.read())["id"] == 7
        (call,) = read_mcp_record(b"".join(line_of(each) for each in proxy.end()))
    assert (call.ended, call.failure) == (True, "protocol")


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
