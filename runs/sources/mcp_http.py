"""The tools of an MCP server at an address (MCP, Streamable HTTP)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx

from evaluators.model import Json
from runs.sources.mcp_stdio import PROTOCOL, NoAnswer, answers, list_tools, notification, request

ACCEPTED = "application/json, text/event-stream"
SESSION = "mcp-session-id"
LONGEST_ANSWER = 16 << 20


def fetch_tools(http: httpx.Client, url: str) -> Json:
    """Return `{"tools": […]}`. Raises `NoAnswer` and httpx's errors."""
    session = _Session(http, url)
    return list_tools(session.request, session.notify)


class _Session:
    def __init__(self, http: httpx.Client, url: str) -> None:
        self.http = http
        self.url = url
        self.number = 0
        self.headers = {"Accept": ACCEPTED}

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        body = request(self.number, method, params)
        with self.http.stream("POST", self.url, json=body, headers=self.headers) as answer:
            answer.raise_for_status()
            if SESSION in answer.headers:
                self.headers[SESSION] = answer.headers[SESSION]
            self.headers["MCP-Protocol-Version"] = PROTOCOL
            for message in _messages(answer):
                if answers(message, self.number):
                    return dict(message)
        raise NoAnswer(f"no response to {method}")

    def notify(self, method: str) -> None:
        self.http.post(self.url, json=notification(method), headers=self.headers).raise_for_status()


def _messages(answer: httpx.Response) -> Iterator[Any]:
    """Yield the messages of a response: one JSON message or an event stream."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        yield _decoded("\n".join(_lines(answer)))
        return
    data: list[str] = []
    for line in _lines(answer):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield _decoded("\n".join(data))
            data = []
    if data:
        yield _decoded("\n".join(data))


def _lines(answer: httpx.Response) -> Iterator[str]:
    remaining = LONGEST_ANSWER
    for line in answer.iter_lines():
        remaining -= len(line)
        if remaining < 0:
            raise NoAnswer(f"the response has more than {LONGEST_ANSWER >> 20} MB")
        yield line


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise NoAnswer(f"the response is not JSON: {error}") from error
