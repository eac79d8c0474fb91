"""List the tools of an MCP server: the exchange in both eras, and its transport over standard input and output.

Servers of the revision 2026-07-28 take requests that name it and have no sessions; earlier ones start with `initialize`.
A server may lock a connection to the era of its first message, so each era that is tried has its own.

Runs as a separate program inside a sandbox (`python mcp_stdio.py COMMAND`) without the rest of evalhub, so it
imports only the standard library. Prints `{"tools": […]}`; the output of a command that prints JSON without
speaking MCP is passed through.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

PROTOCOL = "2025-06-18"
STATELESS = "2026-07-28"
"""The first revision without `initialize`."""
CLIENT = {"name": "evalhub", "version": "1"}
HELLO = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": CLIENT}
META = "io.modelcontextprotocol/"
"""The prefix of the protocol's own keys in `_meta`."""
ENVELOPE = {
    f"{META}protocolVersion": STATELESS,
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": CLIENT,
}
"""What each request of the later era has in `_meta`."""
GREETING: dict[str, tuple[str, dict[str, Any]]] = {
    PROTOCOL: ("initialize", HELLO),
    STATELESS: ("server/discover", {"_meta": ENVELOPE}),
}
"""Method and parameters of each era's first request."""
MOST_PAGES = 100
UNKNOWN_METHOD = -32601
UNSUPPORTED_VERSION = -32022
LEAVE_SECONDS, REFUSED_SECONDS = 2.0, 0.2
"""How long a server has to end by itself once it listed its tools, or refused to."""
NOT_STARTED = (126, 127)
"""Exit codes of a shell whose command doesn't start."""


class NoAnswer(Exception):
    """The server ended or refused; the message says what it sent."""


class EraRefused(NoAnswer):
    """The server doesn't take the first message of an era, or has other revisions."""

    def __init__(self, why: str, error: Any = None, supported: list[str] | None = None) -> None:
        super().__init__(why)
        self.code = error.get("code") if isinstance(error, dict) else None
        self.supported = supported if supported is not None else read_supported_revisions(error)
        """The revisions that it speaks, if it says so."""


class Connection(Protocol):
    """A connection to a server, for one era."""

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request with its method and parameters, and return the response. Raises `NoAnswer`."""

    def notify(self, method: str) -> None:
        """Send a notification."""


Connect = Callable[[str], AbstractContextManager[Connection]]
"""Opens a connection for an era, which is named by its revision."""


def list_all_tools(connect: Connect) -> dict[str, Any]:
    """Return `{"tools": […]}` from all pages (MCP, Lifecycle and Listing Tools), and the server's `serverInfo` and
    `instructions` if it has them. Tries `initialize`, then `server/discover`. Raises `NoAnswer`.
    """
    try:
        return list_tools_of_era(connect, PROTOCOL)
    except EraRefused as error:
        first = error
    try:
        return list_tools_of_era(connect, STATELESS)
    except NoAnswer as second:
        raise _why_neither(first, second) from second


def list_tools_of_era(connect: Connect, era: str) -> dict[str, Any]:
    """Return what `list_all_tools` does, in one era. Raises `NoAnswer`."""
    with connect(era) as connection:
        return _list_pages(connection, _greet(connection, era), era)


def _greet(connection: Connection, era: str) -> dict[str, Any]:
    """Return what the server says about itself. Raises `EraRefused`."""
    method, params = ("initialize", HELLO) if era == PROTOCOL else ("server/discover", {"_meta": ENVELOPE})
    try:
        response = connection.request(method, params)
    except EraRefused:
        raise
    except NoAnswer as ended:
        raise EraRefused(str(ended)) from ended
    # Servers that only answer tools/list have no sessions.
    if era == STATELESS and error_code(response) == UNKNOWN_METHOD:
        return {}
    hello, error = response.get("result"), response.get("error")
    if not isinstance(hello, dict):
        raise EraRefused(describe_refusal(error), error)
    if era == PROTOCOL:
        connection.notify("notifications/initialized")
    elif STATELESS not in (versions := revisions_in(hello.get("supportedVersions"))):
        raise EraRefused("it has other revisions", supported=versions)
    own = hello.get("_meta")
    served = hello.get("serverInfo") or (own.get(f"{META}serverInfo") if isinstance(own, dict) else None)
    about = {"serverInfo": served, "instructions": hello.get("instructions")}
    return {name: value for name, value in about.items() if value}


def _list_pages(connection: Connection, about: dict[str, Any], era: str) -> dict[str, Any]:
    tools: list[Any] = []
    params: dict[str, Any] = {} if era == PROTOCOL else {"_meta": ENVELOPE}
    cursor = None
    for _ in range(MOST_PAGES):
        response = connection.request("tools/list", {**params, **({"cursor": cursor} if cursor else {})})
        if about and error_code(response) == UNKNOWN_METHOD:
            return {"tools": [], **about}  # it has prompts or resources alone
        page = response.get("result")
        if not isinstance(page, dict):
            raise NoAnswer(describe_refusal(response.get("error")))
        tools += page.get("tools") or []
        cursor = page.get("nextCursor")
        if not cursor:
            return {"tools": tools, **about}
    raise NoAnswer(f"it has more than {MOST_PAGES} pages of tools")


def _why_neither(first: EraRefused, second: NoAnswer) -> NoAnswer:
    """Return what to say of a server that takes neither era: its revisions where it names them."""
    for each in (second, first):
        if isinstance(each, EraRefused) and each.supported:
            spoken = ", ".join(each.supported)
            return NoAnswer(f"it speaks MCP {spoken}, and evalhub {PROTOCOL} and {STATELESS}")
    return second if first.code in (UNKNOWN_METHOD, UNSUPPORTED_VERSION) else first


def error_code(response: dict[str, Any]) -> Any:
    """Return the code of a response's error; None without one."""
    error = response.get("error")
    return error.get("code") if isinstance(error, dict) else None


def revisions_in(value: Any) -> list[str]:
    """Return the revisions in a list that a server sent."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def read_supported_revisions(error: Any) -> list[str]:
    """Return the revisions that an error names as those of the server."""
    data = error.get("data") if isinstance(error, dict) else None
    return revisions_in(data.get("supported")) if isinstance(data, dict) else []


def describe_refusal(error: Any) -> str:
    """Return what to say of a response's error."""
    message = error.get("message") if isinstance(error, dict) else error
    return f"the server refused: {message or 'no reason given'}"


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON-RPC 2.0 request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def make_notification(method: str) -> dict[str, Any]:
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

    def __init__(self, command: str) -> None:
        pipe = subprocess.PIPE
        words = ["/bin/sh", "-c", command]
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        self.number = 0
        self.printed: list[str] = []
        """The output so far."""
        self.has_answered = False

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
                self.has_answered = True
                return dict(message)
        raise NoAnswer(f"it ended before its response to {method}")

    def notify(self, method: str) -> None:
        self._send(make_notification(method))

    def _send(self, message: dict[str, Any]) -> None:
        if self.process.stdin is None:
            raise NoAnswer("it has no standard input")
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            # A command that only prints does not read its input; its output is still read.
            return

    def leave(self, seconds: float) -> None:
        """Close the server's input so that it ends; kill it and its children if it doesn't."""
        try:
            self.process.communicate(timeout=seconds)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    @property
    def is_no_server(self) -> bool:
        """Whether it can't be a server: it didn't start, or printed JSON and ended."""
        if self.has_answered:
            return False
        try:
            json.loads("".join(self.printed))
        except ValueError:
            return self.process.wait() in NOT_STARTED
        return True


def main(command: str) -> int:
    """Print the command's tools, or its output if it doesn't speak MCP; return its exit code."""
    children: list[_Child] = []

    @contextmanager
    def connect(era: str) -> Iterator[_Child]:
        if children and children[0].is_no_server:
            raise EraRefused("it doesn't speak MCP")
        child = _Child(command)
        children.append(child)
        seconds = LEAVE_SECONDS
        try:
            yield child
        except NoAnswer:
            # One that ended without an answer keeps its exit code.
            seconds = REFUSED_SECONDS if child.has_answered else LEAVE_SECONDS
            raise
        finally:
            child.leave(seconds)

    try:
        sys.stdout.write(json.dumps(list_all_tools(connect)))
    except NoAnswer as error:
        if any(child.has_answered for child in children):
            sys.stderr.write(f"The MCP server returned no tools: {error}.\n")
            return 1
        sys.stdout.write("".join(children[0].printed))
        return children[0].process.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
