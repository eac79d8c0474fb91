"""Read MCP's messages and record them: requests, responses and times. Standard library only, for the proxy.

A line of the record has `connection` and `number` of its request, and `request` with `time`, or `response` with `seconds`,
or `given_up` for one that the agent no longer waits for. `unread` is the size in bytes of a message that could not be read;
what its head shows is there.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from typing import Any

from runs.engine.mcp.mcp_agreement import GRACE_SECONDS, GREETINGS, Agreement

LONGEST_TEXT = 200_000
"""Characters of one message that are recorded whole."""
LONGEST_LISTING = 2_000_000
"""Characters of a server's list of tools that are recorded whole."""
SERVER_ENDED = -32000
SUBSCRIPTION = "subscriptions/listen"
"""A request whose response is a stream of notifications without an end."""
_DEEPEST = 900
"""Levels of nesting that every reader of the record takes."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def read_message(content: bytes) -> Any:
    """Return a message as JSON; None if it can't be read. Numbers that no float holds become texts."""
    # Bytes of a message that is read as a whole.
    if len(content) > 16 << 20:
        return None
    try:
        message = json.loads(content, parse_float=_finite, parse_constant=str)
        return message if _depth(content) <= _DEEPEST else None
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _depth(content: bytes) -> int:
    """Return an upper bound of the nesting: brackets within texts count, too."""
    if content.count(b"[") + content.count(b"{") <= _DEEPEST:
        return 0
    depth = deepest = 0
    for match in _TOKEN.finditer(content):
        sign = match[0]
        depth += sign in (b"{", b"[")
        depth -= sign in (b"}", b"]")
        deepest = max(deepest, depth)
    return deepest


def read_head(content: bytes) -> dict[str, Any]:
    """Return what is known of a message that can't be read: `id`, `method`, `result`, `error`, a tool's name."""
    head: dict[str, Any] = {}
    depth, path, key, is_key = 0, [""] * 3, "", False
    for match in _TOKEN.finditer(content):
        token = match[0]
        if token in (b"{", b"["):
            if depth == 1 and key in ("result", "error"):
                head[key] = {}
            depth += 1
            if depth < len(path):
                path[depth] = key
            is_key, key = token == b"{", ""
        elif token in (b"}", b"]"):
            depth -= 1
            is_key = False
        elif token == b",":
            is_key = True
        elif token == b":":
            is_key = False
        elif depth > 2:
            continue
        elif is_key:
            key = token.strip(b'"').decode("utf-8", "replace")
        else:
            parent = path[depth] if depth else ""
            if depth == 1 and key in ("id", "method"):
                head[key] = _scalar(token)
            elif depth == 2 and (parent, key) == ("params", "name"):
                head["params"] = {"name": _scalar(token)}
            elif depth == 2 and (parent, key) == ("result", "isError") and token == b"true":
                head["result"] = {"isError": True}
    return head


def _scalar(token: bytes) -> Any:
    try:
        return json.loads(token)
    except ValueError:
        return token.decode("utf-8", "replace")


def is_response(message: Any) -> bool:
    """Return whether a message answers a request."""
    return isinstance(message, dict) and "id" in message and "method" not in message


def override_descriptions(
    method: str, result: dict[str, Any], descriptions: dict[str, Any]
) -> dict[str, Any]:
    """Return a result of `initialize`, `server/discover` or `tools/list` with the descriptions in place of the server's."""
    if method in GREETINGS and descriptions.get("instructions") is not None:
        return {**result, "instructions": descriptions["instructions"]}
    if method != "tools/list" or not descriptions.get("tools"):
        return result
    overrides = descriptions["tools"]
    tools = [
        _describe_tool(tool, overrides.get(tool.get("name")) or {}) for tool in result.get("tools") or []
    ]
    return {**result, "tools": tools}


def _describe_tool(tool: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    changed = dict(tool)
    if override.get("description") is not None:
        changed["description"] = override["description"]
    if override.get("arguments"):
        schema = dict(tool.get("inputSchema") or {})
        properties = dict(schema.get("properties") or {})
        for name, text in override["arguments"].items():
            properties[name] = {**properties.get(name, {}), "description": text}
        changed["inputSchema"] = {**schema, "properties": properties}
    return changed


class Record:
    """Writes down what passes; used by several threads."""

    def __init__(self, path: str, descriptions: dict[str, Any]) -> None:
        self._file = open(path, "ab")  # noqa: PTH123, SIM115  # open as long as the program
        self._descriptions = descriptions
        self._lock = threading.Lock()
        self._number = self._connections = 0
        self._agreement = Agreement()
        self._open: dict[tuple[int, str], tuple[int, Any, str, float]] = {}
        """Number, id, method and start of requests without a response, by connection and id."""

    def connect(self) -> int:
        """Return the number of a new connection."""
        with self._lock:
            self._connections += 1
            self._agreement.connect()
            return self._connections

    def problem(self, grace: float = GRACE_SECONDS) -> str:
        """Return that agent and server share no revision, in a sentence; empty if nothing says so."""
        with self._lock:
            return self._agreement.problem(grace)

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            self._file.close()

    def record_request(self, content: bytes, connection: int) -> None:
        """Record the agent's requests in a message, and those that it no longer waits for."""
        message = read_message(content)
        if message is None:
            self._request({**read_head(content)}, connection, {"unread": len(content)})
            return
        for request in message if isinstance(message, list) else [message]:
            if not isinstance(request, dict):
                continue
            if request.get("method") == "notifications/cancelled":
                self._give_up(request.get("params"), connection)
            else:
                self._request(request, connection, {})

    def _request(self, message: dict[str, Any], connection: int, more: dict[str, Any]) -> None:
        if "method" not in message or "id" not in message:
            return
        with self._lock:
            self._number += 1
            id, method = message["id"], str(message["method"])
            self._open[connection, _key(id)] = (self._number, id, method, time.monotonic())
            self._agreement.ask(self._number, message)
            entry = {"time": time.time(), "request": _short_request(message), **more}
            self._write(connection, self._number, entry)

    def _give_up(self, params: Any, connection: int) -> None:
        id = params.get("requestId") if isinstance(params, dict) else None
        with self._lock:
            if open_request := self._open.get((connection, _key(id))):
                self._write(connection, open_request[0], {"given_up": True})

    def record_response(self, content: bytes, connection: int) -> bytes:
        """Record the server's responses in a message; return it, with the descriptions overridden if there are any."""
        message = read_message(content)
        if message is None:
            head = read_head(content)
            if is_response(head):
                self._response(head, connection, {"unread": len(content)})
            return content
        messages = message if isinstance(message, list) else [message]
        changed = [self._response(each, connection, {}) if is_response(each) else each for each in messages]
        if all(new is old for new, old in zip(changed, messages, strict=True)):
            return content
        return json.dumps(changed if isinstance(message, list) else changed[0]).encode()

    def _response(self, message: dict[str, Any], connection: int, more: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            open_request = self._open.pop((connection, _key(message["id"])), None)
            if open_request is None:
                return message
            number, _, method, began = open_request
            self._agreement.answer(number, message)
            if self._descriptions and isinstance(message.get("result"), dict):
                result = override_descriptions(method, message["result"], self._descriptions)
                if result != message["result"]:
                    message = {**message, "result": result}
            seconds = round(time.monotonic() - began, 6)
            self._write(
                connection, number, {"seconds": seconds, "response": _short_response(message, method), **more}
            )
            return message

    def abandon(self, why: str, connection: int, *, reached: bool = True) -> list[bytes]:
        """Record an error for requests that will have no response, and return the errors.

        `reached` is whether the server could be reached. The end of a subscription is recorded as no error.
        """
        error, closed = {"code": SERVER_ENDED, "message": why}, []
        with self._lock:
            for key in [key for key in self._open if key[0] == connection]:
                number, id, method, began = self._open.pop(key)
                self._agreement.end(number, reached=reached)
                message = {"jsonrpc": "2.0", "id": id, "error": error}
                seconds = round(time.monotonic() - began, 6)
                if method != SUBSCRIPTION:
                    self._write(connection, number, {"seconds": seconds, "response": message})
                closed.append(json.dumps(message).encode())
        return closed

    def is_subscribed(self, connection: int) -> bool:
        """Return whether a connection has an open subscription."""
        with self._lock:
            return any(key[0] == connection and each[2] == SUBSCRIPTION for key, each in self._open.items())

    def _write(self, connection: int, number: int, entry: dict[str, Any]) -> None:
        if not self._file.closed:
            line = json.dumps({"connection": connection, "number": number, **entry})
            self._file.write(line.encode() + b"\n")
            self._file.flush()


def _key(id: Any) -> str:
    return json.dumps(id)


def _short_request(message: dict[str, Any]) -> dict[str, Any]:
    """Return a request, of one that is too long the tool, its call's id, and a digest in place of the arguments."""
    if len(json.dumps(message)) <= LONGEST_TEXT:
        return message
    params = message.get("params")
    fields = params if isinstance(params, dict) else {}
    content = json.dumps(fields.get("arguments"), sort_keys=True)
    shown = {name: fields[name] for name in ("name", "_meta", "uri") if name in fields}
    if "inputResponses" in fields or "requestState" in fields:
        shown |= {"inputResponses": {}, **_short_state(fields)}  # it repeats a call
    digest = {"sha256": hashlib.sha256(content.encode()).hexdigest(), "characters": len(content)}
    return {"id": message["id"], "method": message["method"], "params": {**shown, "digest": digest}}


def _short_state(fields: dict[str, Any]) -> dict[str, Any]:
    state = fields.get("requestState")
    return {"requestState": state} if isinstance(state, str) and len(state) <= LONGEST_TEXT // 10 else {}


def _short_response(message: dict[str, Any], method: str) -> dict[str, Any]:
    """Return a response, of one that is too long only whether it is an error."""
    most = LONGEST_LISTING if method == "tools/list" else LONGEST_TEXT
    if len(json.dumps(message)) <= most:
        return message
    result = message.get("result")
    fields = result if isinstance(result, dict) else {}
    failed = {name: fields[name] for name in ("isError", "resultType") if fields.get(name)} | _short_state(
        fields
    )
    short = {name: message[name] for name in ("id", "error") if name in message}
    return {**short, **({"result": {**failed, "truncated": True}} if result is not None else {})}
