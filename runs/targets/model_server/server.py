"""Serve a script on loopback as OpenAI's Responses and Chat Completions, Anthropic's Messages and Gemini's contents."""

from __future__ import annotations

import json
import secrets
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evalhub.lib.limits import LARGEST_RECORD
from runs.targets.model_server.script import ModelScript, ScriptedTurn
from runs.targets.model_server.wire import (
    STREAMED,
    WIRES,
    AskedConversation,
    ScriptedReply,
    Wire,
    as_event,
    compact_json,
    read_conversation,
)

LOOPBACK = "127.0.0.1"
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


@dataclass(frozen=True)
class SeenRequest:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    def as_json(self) -> str:
        """Return it as one line of JSON, without keys."""
        shown = {
            name: value
            for name, value in self.headers.items()
            if name not in ("authorization", "x-api-key", "api-key", "x-goog-api-key")
        }
        return compact_json({"path": self.path, "headers": shown, "body": self.body})


@dataclass
class ScriptPlayer:
    """Plays a script for any number of conversations: the turn follows from the request itself."""

    script: ModelScript
    record: Callable[[SeenRequest], None] = lambda request: None
    seen: list[SeenRequest] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    _faults: Counter[tuple[str, int]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: SeenRequest) -> None:
        """Remember a request."""
        with self._lock:
            self.seen.append(request)
            self.record(request)

    def turn(self, conversation: AskedConversation) -> tuple[ScriptedTurn, bool] | None:
        """Return the turn of a request and whether its fault is due; None if the script has none."""
        turns = self.script.turns_for(conversation.asked)
        if not turns:
            return None
        if conversation.shell is None:
            # A title, a summary or a judgment: the last thing the model says.
            return next(
                (turn for turn in reversed(turns) if turn.text is not None), ScriptedTurn(text="Done.")
            ), False
        number = _turns_passed(turns, conversation.passed)
        turn = turns[number] if number < len(turns) else _turn_after_end(turns[-1])
        number = min(number, len(turns) - 1)
        if turn.fault is None:
            return turn, False
        with self._lock:
            self._faults[conversation.id, number] += 1
            due = self._faults[conversation.id, number] <= turn.times or (
                turn.command is turn.tool is turn.text is None
            )
        return turn, due


def _turns_passed(turns: list[ScriptedTurn], calls: int) -> int:
    """Return how many turns made this many calls; faults without a turn of their own count as one."""
    passed = 0
    while calls > 0 and passed < len(turns):
        calls -= 1 + len(turns[passed].also)
        passed += 1
    return passed + max(0, calls)


def _turn_after_end(last: ScriptedTurn) -> ScriptedTurn:
    """Return the turn after the script's end."""
    return last if last.command is last.tool is None else ScriptedTurn(text="Done.")


class _Handler(BaseHTTPRequestHandler):
    """One request; `player` is the server's."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    player: ScriptPlayer

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            return self._send(200, {"object": "list", "data": [], "models": [], "has_more": False})
        return self._error(404, f"This model server has no address {self.path}.")

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_POST(self) -> None:
        body = self._body()
        path = self.path.split("?")[0]
        wire = next((each for end, each in WIRES.items() if path.endswith(end)), None)
        if body is None:
            return self._error(400, "The request isn't a JSON object.")
        self.player.take(SeenRequest(path, {k.lower(): v for k, v in self.headers.items()}, body))
        if path.endswith("/count_tokens"):
            return self._send(200, {"input_tokens": self.player.script.usage.input_tokens})
        if wire is None:
            return self._error(404, f"This model server has no address {path}.")
        if path.endswith(STREAMED):
            body["stream"] = True
        conversation = read_conversation(body, self.headers.get("x-session-id") or "")
        played = self.player.turn(conversation)
        if played is None:
            return self._error(400, "No session of the script fits this question, and it has no `turns`.")
        return self._play(*played, conversation, wire, body)

    def _play(
        self, turn: ScriptedTurn, due: bool, conversation: AskedConversation, wire: Wire, body: dict[str, Any]
    ) -> None:
        fault = turn.fault if due else None
        if isinstance(fault, int):
            after = turn.retry_after_seconds
            return self._error(
                fault, f"The script asks for {fault}.", {} if after is None else {"retry-after": str(after)}
            )
        if fault == "silent":
            self.player.stopped.wait(600)
            self.close_connection = True
            return None
        reply = self._reply(
            turn, conversation, str(body.get("model") or "scripted"), nonsense=fault == "nonsense"
        )
        if body.get("stream"):
            return self._stream(wire, reply, cut=fault == "cut")
        return self._cut(b"") if fault == "cut" else self._send(200, wire.whole(reply))

    def _reply(
        self, turn: ScriptedTurn, conversation: AskedConversation, model: str, *, nonsense: bool
    ) -> ScriptedReply:
        reply = ScriptedReply(
            secrets.token_hex(8), model, turn.text or "", "", "{}", self.player.script.usage
        )
        if conversation.shell is None or (turn.command is turn.tool is None and not nonsense):
            return reply
        name, namespace = conversation.spelled(turn.tool) if turn.tool else (conversation.shell.name, "")
        values = turn.arguments if turn.tool else conversation.shell.arguments(turn.command or "")
        arguments = '{"command": [' if nonsense else compact_json(values)
        also = tuple(self._reply(each, conversation, model, nonsense=False) for each in turn.also)
        return replace(reply, text="", tool=name, namespace=namespace, arguments=arguments, also=also)

    def _stream(self, wire: Wire, reply: ScriptedReply, *, cut: bool) -> None:
        events = [as_event(event) for event in wire.events(reply)]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if cut:
            return self._cut(_chunk(b"".join(events[:2])))
        self.wfile.write(b"".join(map(_chunk, events)) + b"0\r\n\r\n")
        return None

    def _cut(self, first: bytes) -> None:
        self.wfile.write(first)
        self.wfile.flush()
        # A reset, not an orderly end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _body(self) -> dict[str, Any] | None:
        length = self.headers.get("content-length") or "0"
        if not length.isdigit() or int(length) > LARGEST_RECORD:
            return None
        try:
            body = json.loads(self.rfile.read(int(length)) or b"null")
        except (ValueError, RecursionError):
            return None
        return body if isinstance(body, dict) else None

    def _error(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        error = {"type": _ERRORS.get(status, "api_error"), "code": str(status), "message": message}
        again = "true" if status in (408, 409, 429) or status >= 500 else "false"
        body = {"type": "error", "error": error}
        self._send(status, body, {"x-should-retry": again, **(headers or {})})

    def _send(self, status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = compact_json(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: requests are recorded."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Five connections wait by default; agents that start at once would be reset.
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that hang up."""


@contextmanager
def serve_models(player: ScriptPlayer, port: int = 0) -> Iterator[str]:
    """Serve on loopback while the block runs; yield the address that targets take as `base_url`.

    Port 0 is any free port. Raises `OSError` if the port is taken.
    """
    server = _Server((LOOPBACK, port), type("Handler", (_Handler,), {"player": player}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/v1"
    finally:
        player.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"
