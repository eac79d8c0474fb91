"""Pass an agent's HTTP requests on to an MCP server at an address. Standard library only, for the proxy."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from runs.sources.mcp_messages import Record

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
_PATH = "/mcp"
_ASK_AGAIN_SECONDS = 0.2


class Face(BaseHTTPRequestHandler):
    """One HTTP connection of the agent."""

    protocol_version = "HTTP/1.1"
    url: str
    record: Record

    def setup(self) -> None:
        """Number the connection."""
        super().setup()
        self.number = self.record.connect()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.record.requested(body, self.number)
        self._pass_on(body)

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_DELETE(self) -> None:
        self._pass_on(None)

    def _pass_on(self, body: bytes | None) -> None:
        if urlsplit(self.path).path != _PATH:
            # Such as a search for an authorization server.
            return self._reply(404, b"{}")
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        upstream = _connection(self.url, UPSTREAM_SECONDS)
        try:
            upstream.request(self.command, _path(self.url), body, headers)
            self._pass_back(upstream.getresponse())
        except (OSError, http.client.HTTPException) as error:
            why = f"The server at {self.url} can't be reached: {error}"
            self._reply(502, (self.record.abandoned(why, self.number) or [b"{}"])[0])
        finally:
            self.record.abandoned("The connection ended before the response.", self.number)
            upstream.close()
        return None

    def _pass_back(self, answer: http.client.HTTPResponse) -> None:
        if answer.headers.get_content_type() != "text/event-stream":
            content = answer.read()
            self._reply(
                answer.status, self.record.responded(content, self.number) if content else content, answer
            )
            return
        self.send_response(answer.status)
        self._headers(answer)
        self.send_header("connection", "close")
        self.close_connection = True
        self.end_headers()
        for event in _events(answer):
            self.wfile.write(self._event(event))
            self.wfile.flush()

    def _event(self, lines: list[bytes]) -> bytes:
        """Return a server-sent event, with the messages in it overridden if need be."""
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        changed = self.record.responded(data, self.number) if data else data
        if changed is not data:
            others = [line for line in lines if not line.startswith(b"data:")]
            lines = [*others, b"data: " + changed]
        return b"\n".join([*lines, b"", b""])

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


def probe_address(url: str, seconds: float, hello: dict[str, Any]) -> None:
    """Wait until a server answers a request to initialize. Raises `OSError` with why it doesn't."""
    body = json.dumps({"jsonrpc": "2.0", "id": "evalhub", "method": "initialize", "params": hello})
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    end = time.monotonic() + seconds
    while True:
        upstream = _connection(url, max(0.1, end - time.monotonic()))
        try:
            upstream.request("POST", _path(url), body, headers)
            answer = upstream.getresponse()
            if answer.status < 400:
                _end_session(url, answer.headers.get("mcp-session-id"))
                return
            why = f"it answers with HTTP status {answer.status}"
        except (OSError, http.client.HTTPException) as error:
            why = f"it can't be reached: {error}"
        finally:
            upstream.close()
        if time.monotonic() + _ASK_AGAIN_SECONDS > end:
            raise OSError(why)
        time.sleep(_ASK_AGAIN_SECONDS)


def _end_session(url: str, session: str | None) -> None:
    if not session:
        return
    upstream = _connection(url, 1.0)
    try:
        upstream.request("DELETE", _path(url), headers={"mcp-session-id": session})
        upstream.getresponse().read()
    except (OSError, http.client.HTTPException):
        pass  # it ends by itself
    finally:
        upstream.close()


def _connection(url: str, seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=seconds)


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
