"""Wait until an MCP server at an address answers. Standard library only, for the proxy."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from runs.engine.mcp.mcp_address import UnusableAddress, data_of, events_in, why_unusable
from runs.engine.mcp.mcp_face import RequestFailed, ServerAnswer, Upstream
from runs.engine.mcp.mcp_messages import is_response, read_message
from runs.engine.mcp.mcp_stdio import GREETING, STATELESS

_ASK_AGAIN_SECONDS = 0.2


def probe_address(upstream: Upstream, seconds: float, hello: dict[str, Any]) -> None:
    """Wait until a server answers. Raises `OSError` or `UnusableAddress` with why it doesn't."""
    end = time.monotonic() + seconds
    while True:
        try:
            return _probe(upstream, max(0.1, end - time.monotonic()), hello)
        except RequestFailed as error:
            why: Exception = OSError(f"it can't be reached: {error}")
        except UnusableAddress as error:
            why = error
        if time.monotonic() + _ASK_AGAIN_SECONDS > end:
            raise why
        time.sleep(_ASK_AGAIN_SECONDS)


def _probe(upstream: Upstream, seconds: float, hello: dict[str, Any]) -> None:
    """Send the first request of one era, then of the other, each on its own connection, until one is answered."""
    try:
        return _greet(upstream, seconds, ("initialize", hello), {})
    except UnusableAddress as error:
        first = error
    method, params = GREETING[STATELESS]
    headers = {"mcp-protocol-version": STATELESS, "mcp-method": method}
    try:
        return _greet(upstream, seconds, (method, params), headers)
    except UnusableAddress:
        raise first from None


def _greet(
    upstream: Upstream, seconds: float, greeting: tuple[str, dict[str, Any]], more: dict[str, str]
) -> None:
    """Send a first request. Raises `UnusableAddress` if no MCP server answers, and `RequestFailed`."""
    method, params = greeting
    body = json.dumps({"jsonrpc": "2.0", "id": "evalhub", "method": method, "params": params})
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **more}
    answer = upstream.ask("POST", body.encode(), headers, seconds)
    try:
        status = answer.response.status
        why = why_unusable(status, answer.content_type)
        # A refusal as a JSON-RPC error is an MCP server's, too.
        is_refusal = status >= 400 and answer.content_type == "application/json"
        if why is not None and not (is_refusal and _greets(answer)):
            raise why
        if why is None and not _greets(answer):
            raise UnusableAddress(f"no response to {method}, so it isn't an MCP server")
        _end_session(upstream, answer.response.headers.get("mcp-session-id"))
    finally:
        answer.discard()


def _greets(answer: ServerAnswer) -> bool:
    """Return whether an answer has a response, as JSON or as the first message of its events."""
    if answer.content_type != "text/event-stream":
        return is_response(read_message(answer.response.read()))
    return any(is_response(read_message(data_of(event))) for event in events_in(answer.response))


def _end_session(upstream: Upstream, session: str | None) -> None:
    if not session:
        return
    with suppress(*RequestFailed, UnusableAddress):  # it ends by itself, too
        upstream.ask("DELETE", None, {"mcp-session-id": session}, 1.0).discard()
