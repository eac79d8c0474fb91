"""Lists the tools of an MCP server: the exchange, and its transport over standard input and output.

Runs as a separate program inside a sandbox (`python mcp_stdio.py COMMAND`) without the rest of evalhub, so it
imports only the standard library. Prints `{"tools": […]}`; the output of a command that prints JSON without
speaking MCP is passed through.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

PROTOCOL = "2025-06-18"
HELLO = {
    "protocolVersion": PROTOCOL,
    "capabilities": {},
    "clientInfo": {"name": "evalhub", "version": "1"},
}
MOST_PAGES = 100
UNKNOWN_METHOD = -32601
LEAVE_SECONDS = 2.0

SendRequest = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Sends a request with its method and parameters, and returns the response."""
SendNotification = Callable[[str], None]
"""Sends a notification."""


class NoAnswer(Exception):
    """The server ended or refused; the message says what it sent."""


def list_all_tools(send_request: SendRequest, notify: SendNotification) -> dict[str, Any]:
    """Return `{"tools": […]}` from all pages (MCP, Lifecycle and Listing Tools), and the server's `serverInfo` and
    `instructions` if it has them. Raises `NoAnswer`.
    """
    greeting, about = send_request("initialize", HELLO), dict[str, Any]()
    # Servers that only answer tools/list have no sessions.
    if (greeting.get("error") or {}).get("code") != UNKNOWN_METHOD:
        hello = _result(greeting)
        about = {name: hello[name] for name in ("serverInfo", "instructions") if hello.get(name)}
        notify("notifications/initialized")
    tools: list[Any] = []
    cursor = None
    for _ in range(MOST_PAGES):
        response = send_request("tools/list", {"cursor": cursor} if cursor else {})
        if about and (response.get("error") or {}).get("code") == UNKNOWN_METHOD:
            return {"tools": [], **about}  # it has prompts or resources alone
        page = _result(response)
        tools += page.get("tools") or []
        cursor = page.get("nextCursor")
        if not cursor:
            return {"tools": tools, **about}
    raise NoAnswer(f"it has more than {MOST_PAGES} pages of tools")


def _result(response: dict[str, Any]) -> dict[str, Any]:
    result = response.get("result")
    if not isinstance(result, dict):
        error = response.get("error")
        message = error.get("message") if isinstance(error, dict) else error
        raise NoAnswer(f"the server refused: {message or 'no reason given'}")
    return result


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON-RPC 2.0 request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def notification(method: str) -> dict[str, Any]:
    """Return a JSON-RPC 2.0 notification."""
    return {"jsonrpc": "2.0", "method": method}


def is_answer(message: Any, number: int) -> bool:
    """Return whether a message is the response to a request."""
    return (
        isinstance(message, dict)
        and message.get("id") == number
        and not message.keys().isdisjoint(("result", "error"))
    )


class _Child:
    """A command that exchanges messages, one per line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.number = 0
        self.printed: list[str] = []
        """The output so far."""

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self._send(request(self.number, method, params))
        for line in self.process.stdout or ():
            self.printed.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if is_answer(message, self.number):
                return dict(message)
        raise NoAnswer(f"it ended before its response to {method}")

    def notify(self, method: str) -> None:
        self._send(notification(method))

    def _send(self, message: dict[str, Any]) -> None:
        if self.process.stdin is None:
            raise NoAnswer("it has no standard input")
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # A command that only prints does not read its input; its output is still read.
            return


def main(command: str) -> int:
    """Print the command's tools, or its output if it doesn't speak MCP; return its exit code."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["/bin/sh", "-c", command], stdin=pipe, stdout=pipe, text=True) as process:
        child = _Child(process)
        try:
            sys.stdout.write(json.dumps(list_all_tools(child.request, child.notify)))
        except NoAnswer as error:
            if child.number > 1:
                sys.stderr.write(f"The MCP server returned no tools: {error}.\n")
                return 1
            sys.stdout.write("".join(child.printed))
            return process.wait()
        finally:
            _leave(process)
    return 0


def _leave(process: subprocess.Popen[str]) -> None:
    """Close the server's input so that it ends; kill it if it doesn't."""
    try:
        process.communicate(timeout=LEAVE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
