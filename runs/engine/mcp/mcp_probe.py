"""Wait until an MCP server at an address answers, and find out its transport. Standard library only, for the proxy."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from runs.engine.mcp.mcp_address import OLDER, UnusableAddress, events_in, field_of, unusable
from runs.engine.mcp.mcp_face import RequestFailed, ServerAnswer, Upstream
from runs.engine.mcp.mcp_messages import is_response, read_message
from runs.engine.mcp.mcp_sse import SsePeer

_ASK_AGAIN_SECONDS = 0.2


def probe_address(upstream: Upstream, seconds: float, hello: dict[str, Any], transport: str) -> str:
    """Wait until a server answers, and return its transport, `http` or `sse`; `transport` is the one to use, if known.

    Raises `OSError` or `UnusableAddress` with why it doesn't answer.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            left = max(0.1, end - time.monotonic())
            if transport != "sse":
                return _probe(upstream, left, hello, transport)
            SsePeer(upstream, left).discard()
            return "sse"
        except RequestFailed as error:
            why: Exception = OSError(f"it can't be reached: {error}")
        except UnusableAddress as error:
            why = error
        if time.monotonic() + _ASK_AGAIN_SECONDS > end:
            raise why
        time.sleep(_ASK_AGAIN_SECONDS)


def _probe(upstream: Upstream, seconds: float, hello: dict[str, Any], transport: str) -> str:
    body = json.dumps({"jsonrpc": "2.0", "id": "evalhub", "method": "initialize", "params": hello})
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer = upstream.ask("POST", body.encode(), headers, seconds)
    try:
        status = answer.response.status
        if status in OLDER and not transport and _is_older(upstream, seconds):
            return "sse"
        if (why := unusable(status, answer.content_type)) is not None:
            raise why
        if not _greets(answer):
            raise UnusableAddress("no response to initialize, so it isn't an MCP server")
        _end_session(upstream, answer.response.headers.get("mcp-session-id"))
        return "http"
    finally:
        answer.discard()


def _greets(answer: ServerAnswer) -> bool:
    """Return whether an answer has a response, as JSON or as the first message of its events."""
    if answer.content_type != "text/event-stream":
        return is_response(read_message(answer.response.read()))
    return any(is_response(read_message(field_of(event, b"data"))) for event in events_in(answer.response))


def _is_older(upstream: Upstream, seconds: float) -> bool:
    try:
        SsePeer(upstream, seconds).discard()
    except (*RequestFailed, UnusableAddress):
        return False
    return True


def _end_session(upstream: Upstream, session: str | None) -> None:
    if not session:
        return
    with suppress(*RequestFailed, UnusableAddress):  # it ends by itself, too
        upstream.ask("DELETE", None, {"mcp-session-id": session}, 1.0).discard()
