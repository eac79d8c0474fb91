"""The tools of an MCP server at an address (MCP, Streamable HTTP)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx

from evaluators.model import Json
from runs.containment.outbound_http import LONGEST_ANSWER
from runs.sources.mcp_stdio import PROTOCOL, NoAnswer, answers, list_tools, notification, request

ACCEPTED = "application/json, text/event-stream"
SESSION = "mcp-session-id"


def fetch_tools(http: httpx.Client, url: str) -> Json:
    """Return `{"tools": […]}`. Raises `NoAnswer` and httpx's errors."""
    session = _Session(http, url)
    return list_tools(session.request, session.notify)


class _Session:
    def __init__(self, http: httpx.Client, url: str) -> None:
        self.http = http
        self.url = url
        self.number = 0
        self.left = LONGEST_ANSWER
        self.headers = {"Accept": ACCEPTED}

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        body = request(self.number, method, params)
        with self.http.stream("POST", self.url, json=body, headers=self.headers) as answer:
            answer.raise_for_status()
            if SESSION in answer.headers:
                self.headers[SESSION] = answer.headers[SESSION]
            self.headers["MCP-Protocol-Version"] = PROTOCOL
            for text in _messages(answer):
                message = self._decoded(text)
                if answers(message, self.number):
                    return dict(message)
        raise NoAnswer(f"no response to {method}")

    def notify(self, method: str) -> None:
        self.http.post(self.url, json=notification(method), headers=self.headers).raise_for_status()

    def _decoded(self, text: str) -> Any:
        # Of all pages together: what is decoded stays in memory.
        self.left -= len(text)
        if self.left < 0:
            raise NoAnswer(f"the responses have more than {LONGEST_ANSWER >> 20} MB")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"the response is not JSON: {error}") from error


def _messages(answer: httpx.Response) -> Iterator[str]:
    """Yield the messages of a response: one JSON message or an event stream."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        yield "\n".join(answer.iter_lines())
        return
    data: list[str] = []
    for line in answer.iter_lines():
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)
