"""A proxy between an agent and an MCP server that records requests, results and times, and may override descriptions.

Runs as a program of its own inside a trial's sandbox (`python mcp_proxy.py SETTINGS`), so it imports only the standard
library. It has two faces: standard input and output for a server that is a command, and Streamable HTTP on loopback for one
that has an address; then it starts the agent itself (`python mcp_proxy.py SETTINGS -- AGENT …`), with its own address in place
of `MCP_ADDRESS`.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MCP_ADDRESS = "http://evalhub-mcp.invalid/mcp"
"""Stands for the proxy's address, whose port is known only when it runs."""
LONGEST_RECORDED = 200_000
"""Characters of one message that are recorded whole."""
SERVER_ENDED = -32000
LEAVE_SECONDS = 2.0
UPSTREAM_SECONDS = 600.0
_PASSED_ON = (
    "accept",
    "content-type",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
    "authorization",
)
_PASSED_BACK = ("content-type", "mcp-session-id", "cache-control", "allow", "www-authenticate")


def overridden(method: str, result: dict[str, Any], descriptions: dict[str, Any]) -> dict[str, Any]:
    """Return a result of `initialize` or `tools/list` with the descriptions put in place of the server's."""
    if method == "initialize" and descriptions.get("instructions") is not None:
        return {**result, "instructions": descriptions["instructions"]}
    if method != "tools/list" or not descriptions.get("tools"):
        return result
    own = descriptions["tools"]
    tools = [_described(tool, own.get(tool.get("name")) or {}) for tool in result.get("tools") or []]
    return {**result, "tools": tools}


def _described(tool: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    changed = dict(tool)
    if own.get("description") is not None:
        changed["description"] = own["description"]
    if own.get("arguments"):
        schema = dict(tool.get("inputSchema") or {})
        properties = dict(schema.get("properties") or {})
        for name, text in own["arguments"].items():
            properties[name] = {**properties.get(name, {}), "description": text}
        changed["inputSchema"] = {**schema, "properties": properties}
    return changed


class Record:
    """Writes down what passes; used by several threads."""

    def __init__(self, path: str, descriptions: dict[str, Any]) -> None:
        self._file = open(path, "a", encoding="utf-8")  # noqa: PTH123, SIM115  # open as long as the program
        self._descriptions = descriptions
        self._lock = threading.Lock()
        self._number = 0
        self._open: dict[tuple[int, str], tuple[int, str, float]] = {}
        """Number, method and start of requests without a response, by connection and id."""

    def close(self) -> None:
        """Close the file. The program leaves that to its end, because a thread may still write."""
        self._file.close()

    def requested(self, message: Any, connection: int = 0) -> None:
        """Record the agent's requests in a message."""
        for each in _each(message):
            if isinstance(each, dict) and "method" in each and "id" in each:
                with self._lock:
                    self._number += 1
                    method = str(each["method"])
                    self._open[connection, str(each["id"])] = (self._number, method, time.monotonic())
                    self._write({"number": self._number, "time": time.time(), "request": _whole(each)})

    def responded(self, message: Any, connection: int = 0) -> Any:
        """Record the server's responses in a message; return it with the descriptions overridden."""
        if isinstance(message, list):
            return [self.responded(each, connection) for each in message]
        if not isinstance(message, dict) or "id" not in message or "method" in message:
            return message
        return self._close_request(message, connection) or message

    def _close_request(self, message: dict[str, Any], connection: int) -> dict[str, Any] | None:
        """Record the response to an open request and return it; None if another thread has answered the request."""
        with self._lock:
            number, method, began = self._open.pop((connection, str(message["id"])), (0, "", 0.0))
            if not number:
                return None
            if isinstance(message.get("result"), dict):
                message = {**message, "result": overridden(method, message["result"], self._descriptions)}
            seconds = round(time.monotonic() - began, 6)
            self._write({"number": number, "seconds": seconds, "response": _whole(message)})
            return message

    def abandoned(self, why: str, connection: int = 0) -> list[dict[str, Any]]:
        """Record an error for requests that will have no response, and return the errors."""
        with self._lock:
            ids = [id for owner, id in self._open if owner == connection]
        error = {"code": SERVER_ENDED, "message": why}
        # A request's id is a number or a text; the first fits nearly every agent.
        messages = [{"jsonrpc": "2.0", "id": int(id) if id.isdigit() else id, "error": error} for id in ids]
        return [closed for each in messages if (closed := self._close_request(each, connection))]

    def _write(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()


def _each(message: Any) -> list[Any]:
    return message if isinstance(message, list) else [message]


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message, without the content of one that is too long."""
    if len(json.dumps(message)) <= LONGEST_RECORDED:
        return message
    result = message.get("result")
    failed = {"isError": True} if isinstance(result, dict) and result.get("isError") else {}
    short = {name: message[name] for name in ("id", "method", "error") if name in message}
    return {**short, **({"result": {**failed, "truncated": True}} if result is not None else {})}


def _decoded(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def over_stdio(settings: dict[str, Any], record: Record) -> int:
    """Pass lines between the agent and the server's process until one of them ends."""
    env = {**os.environ, **settings.get("env", {})}
    command = ["/bin/sh", "-c", settings["command"]]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    ended = threading.Event()
    answering = threading.Thread(target=_pass_answers, args=(process, record, ended))
    answering.start()
    try:
        for line in sys.stdin.buffer:
            record.requested(_decoded(line))
            try:
                process.stdin.write(line)  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
            except BrokenPipeError:
                ended.set()
            if ended.is_set():
                # Its pipe may take a request that nobody reads any more.
                _send(record.abandoned("The server has ended."))
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(LEAVE_SECONDS)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        process.kill()
    answering.join(LEAVE_SECONDS)
    return 0


def _pass_answers(process: subprocess.Popen[bytes], record: Record, ended: threading.Event) -> None:
    for line in process.stdout or ():
        message = _decoded(line)
        if message is not None:
            _send([record.responded(message)])
    ended.set()
    _send(record.abandoned("The server ended before its response."))


_sending = threading.Lock()


def _send(messages: list[Any]) -> None:
    with _sending:
        for message in messages:
            sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


class _Face(BaseHTTPRequestHandler):
    """One HTTP request of the agent, passed on to the server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    settings: dict[str, Any]
    record: Record

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.record.requested(_decoded(body), id(self))
        self._pass_on(body)

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_DELETE(self) -> None:
        self._pass_on(None)

    def _pass_on(self, body: bytes | None) -> None:
        if urlsplit(self.path).path != urlsplit(MCP_ADDRESS).path:
            # Such as a search for an authorization server.
            return self._reply(404, b"{}")
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        upstream = _connection(self.settings["url"])
        try:
            upstream.request(self.command, _path(self.settings["url"]), body, headers)
            answer = upstream.getresponse()
            self._pass_back(answer)
        except (OSError, http.client.HTTPException) as error:
            why = f"The server at {self.settings['url']} can't be reached: {error}"
            self._reply(502, json.dumps((self.record.abandoned(why, id(self)) or [{}])[0]).encode())
        finally:
            self.record.abandoned("The connection ended before the response.", id(self))
            upstream.close()
        return None

    def _pass_back(self, answer: http.client.HTTPResponse) -> None:
        if (answer.headers.get_content_type()) == "text/event-stream":
            self.send_response(answer.status)
            self._headers(answer)
            self.send_header("connection", "close")
            self.close_connection = True
            self.end_headers()
            for event in _events(answer):
                self.wfile.write(self._event(event))
                self.wfile.flush()
            return
        content = answer.read()
        message = _decoded(content) if content else None
        if message is not None:
            content = json.dumps(self.record.responded(message, id(self))).encode()
        self._reply(answer.status, content, answer)

    def _event(self, lines: list[bytes]) -> bytes:
        """Return a server-sent event with the messages in it overridden."""
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        message = _decoded(data) if data else None
        if message is None:
            return b"\n".join([*lines, b"", b""])
        others = [line for line in lines if not line.startswith(b"data:")]
        text = json.dumps(self.record.responded(message, id(self))).encode()
        return b"\n".join([*others, b"data: " + text, b"", b""])

    def _reply(self, status: int, content: bytes, answer: http.client.HTTPResponse | None = None) -> None:
        self.send_response(status)
        if answer is not None:
            self._headers(answer)
        else:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _headers(self, answer: http.client.HTTPResponse) -> None:
        for name in _PASSED_BACK:
            if name in answer.headers:
                self.send_header(name, answer.headers[name])

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: requests are recorded."""


def _connection(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=UPSTREAM_SECONDS)


def _path(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _events(answer: http.client.HTTPResponse) -> Iterator[list[bytes]]:
    """Yield server-sent events as their lines."""
    lines: list[bytes] = []
    while line := answer.readline():
        line = line.rstrip(b"\r\n")
        if line:
            lines.append(line)
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore agents that hang up."""


def over_http(settings: dict[str, Any], record: Record, agent: list[str]) -> int:
    """Serve on loopback while the agent runs; return the agent's exit code."""
    server = _Server(("127.0.0.1", 0), type("Face", (_Face,), {"settings": settings, "record": record}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/mcp"

    def placed(text: str) -> str:
        return text.replace(MCP_ADDRESS, address)

    config = Path(settings["config"])
    config.write_text(placed(config.read_text()))
    env = {name: placed(value) for name, value in os.environ.items()}
    code = subprocess.run([placed(word) for word in agent], env=env).returncode
    return code if code >= 0 else 128 - code


def main(words: list[str]) -> int:
    """Run the proxy over HTTP around an agent if one is given, else over standard input and output."""
    settings = json.loads(Path(words[0]).read_text())
    record = Record(settings["record"], settings.get("descriptions") or {})
    if len(words) > 1:
        return over_http(settings, record, words[2:])
    return over_stdio(settings, record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
