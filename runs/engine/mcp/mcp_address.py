"""The address of an MCP server: redirects within its origin, and what answers there if it can't be used.

Standard library only, for the proxy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO
from urllib.parse import urljoin, urlsplit

MOST_REDIRECTS = 5
NO_LOGIN = (401, 403)
"""How a server asks for a login."""
EVENTS = "text/event-stream"


class UnusableAddress(Exception):
    """No MCP server answers at the address; the message says what does, without a full stop."""


def moved_to(url: str, status: int, location: str | None) -> str | None:
    """Return where a redirect leads; None for any other answer. Raises `UnusableAddress` for another origin."""
    if status not in (301, 302, 307, 308) or not location:
        return None
    target = urljoin(url, location)
    if _origin(target) != _origin(url):
        raise UnusableAddress(f"it redirects to {target}, which is another origin. Write that address")
    return target


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, parts.hostname, port


def why_unusable(status: int, content_type: str) -> UnusableAddress | None:
    """Return why an answer can't come from an MCP server; None if it can."""
    kind = content_type.partition(";")[0].strip().lower()
    if status in NO_LOGIN:
        why = f"it asks for a login (HTTP status {status}). Give it with target.mcp.headers"
    elif status == 404:
        why = "it has nothing at this path (HTTP status 404)"
    elif status >= 400:
        why = f"it answers with HTTP status {status}"
    elif kind == "text/html":
        why = "a web page answers there (text/html), no MCP server"
    elif status != 202 and kind not in ("application/json", EVENTS, ""):
        why = f"it answers with {kind}, which isn't an MCP message"
    else:
        return None
    return UnusableAddress(why)


def events_in(lines: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield server-sent events as their lines."""
    event: list[bytes] = []
    while line := lines.readline():
        line = line.rstrip(b"\r\n")
        if line:
            event.append(line)
        elif event:
            yield event
            event = []
    if event:
        yield event


def data_of(event: list[bytes]) -> bytes:
    """Return the data of an event; its lines are joined."""
    return b"\n".join(
        line.removeprefix(b"data:").removeprefix(b" ") for line in event if line.startswith(b"data:")
    )
