"""Asks an MCP server for its tools: the exchange, and the way over standard input and output.

Run as a program of its own inside a sandbox (`python mcp_stdio.py COMMAND`), where nothing else of evalhub
is in sight: it imports the standard library alone. It prints `{"tools": […]}`; a command that speaks no MCP
and prints JSON by itself is passed through.
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

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Sends a request by its method and parameters, and returns the response."""
Tell = Callable[[str], None]
"""Sends a notification."""


class NoAnswer(Exception):
    """The server went away, or refused; the message says what came."""


def list_tools(ask: Ask, tell: Tell) -> dict[str, Any]:
    """Return `{"tools": […]}` of all pages (MCP, Lifecycle and Listing Tools). Raises `NoAnswer`."""
    greeting = ask("initialize", HELLO)
    # Servers that only answer tools/list know no sessions, and need none.
    if (greeting.get("error") or {}).get("code") != UNKNOWN_METHOD:
        _result(greeting)
        tell("notifications/initialized")
    tools: list[Any] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = _result(ask("tools/list", {"cursor": cursor} if cursor else {}))
        tools += page.get("tools") or []
        cursor = page.get("nextCursor")
        if not cursor:
            return {"tools": tools}
    raise NoAnswer(f"it has more than {MOST_PAGES} pages of tools")


def _result(response: dict[str, Any]) -> dict[str, Any]:
    result = response.get("result")
    if not isinstance(result, dict):
        told = response.get("error")
        said = told.get("message") if isinstance(told, dict) else told
        raise NoAnswer(f"it refused: {said or 'without a reason'}")
    return result


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a request as JSON-RPC 2.0 has it."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def notification(method: str) -> dict[str, Any]:
    """Return a notification as JSON-RPC 2.0 has it."""
    return {"jsonrpc": "2.0", "method": method}


def answers(message: Any, number: int) -> bool:
    """Tell whether a message is the response to a request."""
    return (
        isinstance(message, dict)
        and message.get("id") == number
        and not message.keys().isdisjoint(("result", "error"))
    )


class _Child:
    """A command in conversation: a message a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.number = 0
        self.printed: list[str] = []
        """Everything that it has printed so far."""

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self._send(request(self.number, method, params))
        for line in self.process.stdout or ():
            self.printed.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if answers(message, self.number):
                return dict(message)
        raise NoAnswer(f"it ended before it answered {method}")

    def tell(self, method: str) -> None:
        self._send(notification(method))

    def _send(self, message: dict[str, Any]) -> None:
        if self.process.stdin is None:
            raise NoAnswer("it has no standard input")
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # A command that only prints does not listen; what it printed is still read.
            return


def main(command: str) -> int:
    """Print the tools that the command tells of, or what it printed where it speaks no MCP; return its exit code."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["/bin/sh", "-c", command], stdin=pipe, stdout=pipe, text=True) as process:
        child = _Child(process)
        try:
            sys.stdout.write(json.dumps(list_tools(child.ask, child.tell)))
        except NoAnswer as error:
            if child.number > 1:
                sys.stderr.write(f"The MCP server gave no tools: {error}.\n")
                return 1
            sys.stdout.write("".join(child.printed))
            return process.wait()
        finally:
            _leave(process)
    return 0


def _leave(process: subprocess.Popen[str]) -> None:
    """Close the server's input, which asks it to end, and end it where it does not."""
    try:
        process.communicate(timeout=LEAVE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
