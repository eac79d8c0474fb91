"""The older HTTP+SSE transport of MCP (protocol of 2024-11-05) as lines in both directions. Standard library only, for the proxy.

The server names an endpoint in the first event of a stream. Messages are posted there, and responses are later events.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urljoin

from runs.engine.mcp.mcp_address import EVENTS, UnusableAddress, events_in, field_of, moved_to, unusable
from runs.engine.mcp.mcp_face import Upstream

POST_SECONDS = 600.0


class SsePeer:
    """A session with a server."""

    def __init__(self, upstream: Upstream, seconds: float) -> None:
        """Open the stream and wait for the endpoint. Raises `OSError`, `HTTPException` and `UnusableAddress`."""
        self._answer = upstream.ask("GET", None, {"accept": EVENTS}, seconds)
        try:
            self._events = events_in(self._answer.response)
            self._endpoint = Upstream(self._wait_for_endpoint(upstream.url), upstream.headers)
        except BaseException:
            self._answer.discard()
            raise
        if self._answer.socket is not None:
            # Between calls a server may be silent.
            self._answer.socket.settimeout(None)

    def _wait_for_endpoint(self, url: str) -> str:
        status, kind = self._answer.response.status, self._answer.content_type
        if (why := unusable(status, kind)) is not None:
            raise why
        if kind != EVENTS:
            raise UnusableAddress(
                "it has no events (text/event-stream), as the older HTTP+SSE transport needs them"
            )
        for event in self._events:
            if field_of(event, b"event") == b"endpoint":
                endpoint = field_of(event, b"data").decode("utf-8", "replace")
                return moved_to(url, 307, endpoint) or urljoin(url, endpoint)
        raise UnusableAddress("its events name no endpoint")

    def send(self, line: bytes) -> None:
        """Post a message. Raises `OSError` if the server doesn't take it."""
        headers = {"content-type": "application/json"}
        answer = self._endpoint.ask("POST", line.strip(), headers, POST_SECONDS)
        try:
            answer.response.read()
            if answer.response.status >= 400:
                raise OSError(f"the server answers with HTTP status {answer.response.status}")
        finally:
            answer.discard()

    def lines(self) -> Iterator[bytes]:
        """Yield the server's messages, each in one line."""
        for event in self._events:
            if field_of(event, b"event") in (b"", b"message") and (data := field_of(event, b"data")):
                yield data.replace(b"\n", b" ") + b"\n"

    def leave(self) -> None:
        """End the session, also while another thread reads its lines."""
        self._answer.close()

    def discard(self) -> None:
        """End a session whose lines nobody reads."""
        self._answer.discard()
