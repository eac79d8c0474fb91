"""The tools of an MCP server at an address (MCP, Streamable HTTP)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import httpx

from evalhub.lib.limits import LARGEST_MESSAGE
from evaluators.model import Json
from runs.engine.mcp.mcp_address import EVENTS, MOST_REDIRECTS, UnusableAddress, moved_to, why_unusable
from runs.engine.mcp.mcp_stdio import (
    STATELESS,
    EraRefused,
    NoAnswer,
    describe_refusal,
    is_answer,
    list_all_tools,
    make_notification,
    request,
)

SESSION, VERSION = "mcp-session-id", "mcp-protocol-version"


def fetch_tools(http: httpx.Client, url: str, headers: Mapping[str, str] | None = None) -> Json:
    """Return `{"tools": […]}`. Raises `NoAnswer` and httpx's errors."""
    return list_all_tools(lambda era: nullcontext(_Session(http, url, headers or {}, era)))


def _check(answer: httpx.Response) -> None:
    """Raise `NoAnswer` with what answers, if it isn't an MCP server."""
    if (why := why_unusable(answer.status_code, answer.headers.get("content-type", ""))) is not None:
        raise NoAnswer(str(why))


class _Session:
    """A session with a server, which follows redirects within its origin."""

    def __init__(self, http: httpx.Client, url: str, headers: Mapping[str, str], era: str) -> None:
        self.http = http
        self.url = url
        self.headers = {"Accept": "application/json, text/event-stream", **headers}
        self.era = era
        self.number = 0
        self.left = LARGEST_MESSAGE

    @contextmanager
    def _post(self, message: Json) -> Iterator[httpx.Response]:
        """Yield the answer to a message. Raises `NoAnswer` if it can't come from an MCP server."""
        for _ in range(MOST_REDIRECTS + 1):
            with self.http.stream("POST", self.url, json=message, headers=self.headers) as answer:
                try:
                    target = moved_to(self.url, answer.status_code, answer.headers.get("location"))
                except UnusableAddress as error:
                    raise NoAnswer(str(error)) from error
                if target is None:
                    yield answer
                    return
            self.url = target
        raise NoAnswer("it redirects in a circle")

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        if self.era == STATELESS:
            self.headers |= {VERSION: STATELESS, "Mcp-Method": method}
        with self._post(request(self.number, method, params)) as answer:
            refused = self._error(answer)
            # How a server answers the first message of an era that it doesn't speak.
            if self.number == 1 and answer.status_code in (400, 404, 405):
                error = refused and refused["error"]
                raise EraRefused(
                    describe_refusal(error) if error else str(why_unusable(answer.status_code, "")), error
                )
            if refused:
                return refused
            _check(answer)
            if SESSION in answer.headers:
                self.headers[SESSION] = answer.headers[SESSION]
            self.headers[VERSION] = self.era
            for text in _messages(answer):
                message = self._decode(text)
                if is_answer(message, self.number):
                    return dict(message)
        raise NoAnswer(f"no response to {method}")

    def _error(self, answer: httpx.Response) -> dict[str, Any] | None:
        """Return the JSON-RPC error that an HTTP status of failure comes with; None without one."""
        if answer.status_code < 400 or "json" not in answer.headers.get("content-type", ""):
            return None
        message = self._decode("\n".join(answer.iter_lines()) or "null")
        if not isinstance(message, dict) or not isinstance(message.get("error"), dict):
            return None
        # A server that couldn't read the request has no id for its answer.
        return message if message.get("id") in (self.number, None) and "jsonrpc" in message else None

    def notify(self, method: str) -> None:
        with self._post(make_notification(method)) as answer:
            _check(answer)

    def _decode(self, text: str) -> Any:
        # Of all pages together: what is decoded stays in memory.
        self.left -= len(text)
        if self.left < 0:
            raise NoAnswer(f"the responses have more than {LARGEST_MESSAGE >> 20} MB")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"the response is not JSON: {error}") from error


def _messages(answer: httpx.Response) -> Iterator[str]:
    """Yield the messages of a response: one JSON message or an event stream."""
    if not answer.headers.get("content-type", "").startswith(EVENTS):
        yield "\n".join(answer.iter_lines())
        return
    data = list[str]()
    for line in answer.iter_lines():
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)
