"""Pass an agent's HTTP requests on to an MCP server at an address. Standard library only, for the proxy."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import urlsplit

from runs.engine.mcp.mcp_address import (
    MOST_REDIRECTS,
    NO_LOGIN,
    UnusableAddress,
    data_of,
    events_in,
    moved_to,
)
from runs.engine.mcp.mcp_messages import Record

UPSTREAM_SECONDS = 600.0
_PASSED_ON = ("accept", "content-type", "last-event-id", "authorization")
_PASSED_BACK = ("content-type", "cache-control", "allow", "www-authenticate")
RequestFailed = (OSError, http.client.HTTPException)
"""What a request raises if a server can't be reached or answers in no HTTP."""


class HttpFrontend(BaseHTTPRequestHandler):
    """One HTTP connection of the agent."""

    protocol_version = "HTTP/1.1"
    # One write for each answer: the second one of a connection that is kept alive could wait for an acknowledgement.
    wbufsize = -1
    upstream: Upstream
    record: Record

    def setup(self) -> None:
        """Number the connection."""
        super().setup()
        self._is_streaming = False
        self.number = self.record.connect()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.record.record_request(body, self.number)
        self._pass_on(body)

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_DELETE(self) -> None:
        self._pass_on(None)

    def _pass_on(self, body: bytes | None) -> None:
        if urlsplit(self.path).path != "/mcp":
            # Such as a search for an authorization server.
            return self._reply(404, b"{}")
        headers = dict(_passing(self.headers, _PASSED_ON))
        answer = None
        try:
            answer = self.upstream.ask(self.command, body, headers, UPSTREAM_SECONDS)
            self._pass_back(answer)
        except RequestFailed as error:
            self._fail(f"The server at {self.upstream.url} can't be reached: {error}")
        except UnusableAddress as error:
            self._fail(f"The server at {self.upstream.url} can't be used: {error}.")
        finally:
            why = "The connection ended before the response."
            # Whether an answer is the MCP server's own: neither a login nor an outage before it.
            self.record.abandon(
                why,
                self.number,
                reached=answer is not None
                and (answer.response.status < 500 and answer.response.status not in NO_LOGIN),
            )
            if answer is not None:
                answer.close()
        return None

    def _fail(self, why: str) -> None:
        errors = self.record.abandon(why, self.number, reached=False)
        if self._is_streaming:
            return  # what is left of a stream can't be an answer
        self._reply(502, (errors or [b"{}"])[0])

    def _pass_back(self, whole: ServerAnswer) -> None:
        answer = whole.response
        if answer.headers.get_content_type() != "text/event-stream":
            content = answer.read()
            self._reply(
                answer.status,
                self.record.record_response(content, self.number) if content else content,
                answer,
            )
            return
        self.send_response(answer.status)
        self._headers(answer)
        self.send_header("connection", "close")
        self.close_connection = True
        self.end_headers()
        self.wfile.flush()
        self._is_streaming = True
        if whole.socket is not None and (self.command == "GET" or self.record.is_subscribed(self.number)):
            # Between notifications a server may be silent.
            whole.socket.settimeout(None)
        for event in events_in(answer):
            self.wfile.write(self._event(event))
            self.wfile.flush()

    def _event(self, lines: list[bytes]) -> bytes:
        """Return a server-sent event, with the messages in it overridden if need be."""
        data = data_of(lines)
        changed = self.record.record_response(data, self.number) if data else data
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
        self.wfile.flush()

    def _headers(self, answer: http.client.HTTPResponse) -> None:
        for name, value in _passing(answer.headers, _PASSED_BACK):
            self.send_header(name, value)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: requests are recorded."""


def _passing(headers: Message, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the headers that pass: those named, and the protocol's own."""
    for name, value in headers.items():
        # What the protocol's own headers begin with, which pass both ways.
        if name.lower() in names or name.lower().startswith("mcp-"):
            yield name.lower(), value


class ServerAnswer(NamedTuple):
    """The answer of a server, with what has to be closed."""

    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse
    socket: socket.socket | None

    @property
    def content_type(self) -> str:
        """Return the type, without parameters."""
        return (
            str(self.response.headers.get_content_type()) if "content-type" in self.response.headers else ""
        )

    def close(self) -> None:
        """Close the connection, also while another thread reads from it."""
        if self.socket is not None:
            with suppress(OSError):  # it may be closed already
                self.socket.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def discard(self) -> None:
        """Close the connection and the response, which no other thread reads."""
        self.response.close()
        self.close()


class Upstream:
    """A server's address with the headers of each request; it follows redirects within its origin."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.url = url
        self.headers = {name.lower(): value for name, value in headers.items()}

    def ask(
        self, method: str, body: bytes | None, headers: Mapping[str, str], seconds: float | None
    ) -> ServerAnswer:
        """Return the answer to a request. Raises `OSError`, `HTTPException` and `UnusableAddress`."""
        url = self.url
        for _ in range(MOST_REDIRECTS + 1):
            answer = _ask(url, method, body, {**headers, **self.headers}, seconds)
            try:
                target = moved_to(url, answer.response.status, answer.response.headers.get("location"))
            except UnusableAddress:
                answer.discard()
                raise
            if target is None:
                self.url = url
                return answer
            answer.discard()
            url = target
        raise UnusableAddress("it redirects in a circle")


def _ask(
    url: str, method: str, body: bytes | None, headers: Mapping[str, str], seconds: float | None
) -> ServerAnswer:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, body, dict(headers))
        opened = connection.sock
        return ServerAnswer(connection, connection.getresponse(), opened)
    except BaseException:
        connection.close()
        raise
