"""A proxy between an agent and an MCP server that records requests, results and times, and may override descriptions.

Runs as a program of its own in a second sandbox of the trial (`python mcp_proxy.py SETTINGS`), out of the agent's reach, so
it imports only the standard library. It listens on a socket for the agent's connections, each of which gets a server process
of its own (MCP's stdio transport) or is passed on to the server's address (Streamable HTTP). On a second socket the worker
waits until the server is ready (`wait`), and ends the proxy (`end`).

Messages are passed on as bytes; what can't be read is recorded with its size.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

# Run with -I, the program finds only the standard library.
sys.path.insert(0, os.path.abspath(__file__).rsplit("/runs/", 1)[0])  # noqa: PTH100

from runs.engine.mcp.mcp_face import HttpFrontend, Upstream
from runs.engine.mcp.mcp_messages import Record, is_response, read_message
from runs.engine.mcp.mcp_probe import probe_address
from runs.engine.mcp.mcp_stdio import GREETING, HELLO, NOT_STARTED

LEAVE_SECONDS = 2.0
RECORD, CONTROL, DOOR = "record.jsonl", "control", "door"
"""Names of the record and of the sockets for the worker and for agents."""
_WATCH_SECONDS = 0.1


class ServerNotReady(Exception):
    """The server didn't come up; the message says why, without a full stop."""


class Child(NamedTuple):
    """A process of the server, with its pipes."""

    process: subprocess.Popen[bytes]
    stdin: IO[bytes]
    stdout: IO[bytes]

    def send(self, line: bytes) -> None:
        """Write all of it: an unbuffered pipe may take a part only."""
        left = memoryview(line)
        while left:
            left = left[self.stdin.write(left) :]

    def lines(self) -> Iterable[bytes]:
        """Return what it prints."""
        return self.stdout

    def leave(self) -> None:
        """Close its input so that it ends; kill it if it doesn't."""
        with suppress(OSError):
            self.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(LEAVE_SECONDS)
        _kill(self)


class Servers:
    """The server's processes. One is started before the agent asks for it, so that it is ready in time."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._spare: Child | None = None
        self._all: list[Child] = []
        self._lock = threading.Lock()

    def _start(self) -> Child:
        (there, stdin), (stdout, here) = os.pipe(), os.pipe()
        words = ["/bin/sh", "-c", self._command]
        process = subprocess.Popen(words, stdin=there, stdout=here, start_new_session=True)
        os.close(there)
        os.close(here)
        child = Child(process, os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb"))
        self._all.append(child)
        return child

    def prepare(self, seconds: float) -> None:
        """Start the server to see that it answers, then the one that waits for the agent. Raises `ServerNotReady`.

        One that ends at the first request of an era is started again for the other.
        """
        end = time.monotonic() + seconds
        code = None
        for greeting in GREETING.values():
            began = time.monotonic()
            tried = self._start()
            answer: list[bytes] = []
            reading = threading.Thread(target=_await_hello, args=(tried, greeting, answer), daemon=True)
            reading.start()
            reading.join(max(0.0, end - began))
            took = time.monotonic() - began
            if answer:
                tried.leave()
                self._spare = self._start()
                # It takes as long as the first, which has just been read from the disk.
                with suppress(subprocess.TimeoutExpired):
                    self._spare.process.wait(took)
                return
            with suppress(subprocess.TimeoutExpired):
                tried.process.wait(0.1 if reading.is_alive() else LEAVE_SECONDS)
            code = tried.process.poll()
            _kill(tried)
            if code is None:
                raise ServerNotReady(f"it didn't answer within {seconds:g} s")
            if code in NOT_STARTED:
                break
        raise ServerNotReady(f"it ended with exit code {code}")

    def take(self) -> Child:
        """Return a process for one connection."""
        with self._lock:
            spare, self._spare = self._spare, None
            return spare if spare is not None and spare.process.poll() is None else self._start()

    def end(self) -> None:
        """End every process that is left."""
        with self._lock:
            for child in self._all:
                child.leave()


def _await_hello(child: Child, greeting: tuple[str, dict[str, Any]], answer: list[bytes]) -> None:
    """Send a first request, and put the response into `answer`."""
    method, params = greeting
    asked = {"jsonrpc": "2.0", "id": "evalhub", "method": method, "params": params}
    with suppress(OSError):
        child.stdin.write(json.dumps(asked).encode() + b"\n")
        for line in child.stdout:
            if is_response(message := read_message(line)) and message.get("id") == "evalhub":
                answer.append(line)
                return


def _kill(child: Child) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.process.pid, signal.SIGKILL)
    child.process.wait()


class ProxiedConnection:
    """One connection of the agent and its server: lines in both directions."""

    def __init__(self, connection: socket.socket, record: Record, child: Child) -> None:
        self.agent = connection
        self.record = record
        self.child = child
        self.number = record.connect()
        self._sending = threading.Lock()
        self._is_ended = threading.Event()

    def run(self) -> None:
        """Pass lines on until the agent closes the connection."""
        answering = threading.Thread(target=self._pass_answers, daemon=True)
        answering.start()
        with suppress(OSError):
            for line in self.agent.makefile("rb"):
                self.record.record_request(line, self.number)
                try:
                    self.child.send(line)
                except (OSError, ValueError):
                    self._is_ended.set()
                if self._is_ended.is_set():
                    # Its pipe may take a request that nobody reads any more.
                    self._send(self.record.abandon("The server has ended.", self.number))
        self._is_ended.set()
        self.child.leave()
        answering.join(LEAVE_SECONDS)
        with suppress(OSError):
            self.agent.shutdown(socket.SHUT_RDWR)
        self.agent.close()

    def _pass_answers(self) -> None:
        with suppress(OSError, ValueError):
            for line in self.child.lines():
                if line.strip():
                    self._send([self.record.record_response(line, self.number)])
        if not self._is_ended.is_set():
            self._is_ended.set()
            self._send(self.record.abandon("The server ended before its response.", self.number))

    def _send(self, lines: list[bytes]) -> None:
        with self._sending, suppress(OSError):
            for line in lines:
                self.agent.sendall(line if line.endswith(b"\n") else line + b"\n")


class _HttpServer(ThreadingHTTPServer):
    """Streamable HTTP on a Unix socket."""

    address_family = socket.AF_UNIX
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind; the base class asks for a host's name."""
        self.socket.bind(self.server_address)

    def get_request(self) -> tuple[Any, Any]:
        """Return a connection with an address, because a Unix socket has none."""
        return self.socket.accept()[0], ("agent", 0)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore agents that hang up."""


class AgentSocket:
    """The socket that agents connect to, for lines or for HTTP."""

    def __init__(self) -> None:
        """Make it in the working folder, which may be another one later."""
        self._path = f"/proc/self/fd/{os.open('.', os.O_RDONLY)}/{DOOR}"

    def serve_lines(self, record: Record, take: Callable[[], Child]) -> None:
        """Serve connections of lines, each with a process of its own."""
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self._path)
        listening.listen(64)
        threading.Thread(target=_accept, args=(listening, record, take), daemon=True).start()

    def serve_http(self, record: Record, upstream: Upstream) -> None:
        """Serve Streamable HTTP."""
        face = type("OwnFace", (HttpFrontend,), {"upstream": upstream, "record": record})
        self._http = _HttpServer(self._path, face)  # type: ignore[arg-type]  # a Unix socket's address is a path
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Serve no more over HTTP."""
        self._http.shutdown()
        self._http.server_close()


def _accept(listening: socket.socket, record: Record, take: Callable[[], Child]) -> None:
    while True:
        session = ProxiedConnection(listening.accept()[0], record, take())
        threading.Thread(target=session.run, daemon=True).start()


def serve(settings: dict[str, Any], record: Record) -> tuple[Callable[[float], None], Callable[[], None]]:
    """Listen for the agent; return what waits until the server is ready, and what ends it."""
    door = AgentSocket()
    if url := settings.get("url"):
        upstream = Upstream(url, settings.get("headers") or {})
        door.serve_http(record, upstream)
        return lambda seconds: probe_address(upstream, seconds, HELLO), door.close
    servers = Servers(settings["command"])
    door.serve_lines(record, servers.take)
    return servers.prepare, servers.end


def obey(commands: BinaryIO, answers: BinaryIO, prepare: Callable[[float], None], record: Record) -> None:
    """Do what the worker says on its connection, until it says `end` or is gone.

    Says by itself when agent and server share no revision, a second after the server refused.
    """
    for line in commands:
        if line == b"end\n":
            _say_problem(answers, record.problem(0.0))
            return
        problem = ""
        try:
            prepare(float(line))
        except Exception as error:
            problem = str(error) or type(error).__name__
        _say(answers, {"problem": problem})
        if not problem:
            threading.Thread(target=_watch, args=(answers, record), daemon=True).start()


def _watch(answers: BinaryIO, record: Record) -> None:
    while not (problem := record.problem()):
        time.sleep(_WATCH_SECONDS)
    _say_problem(answers, problem)


def _say_problem(answers: BinaryIO, problem: str) -> None:
    if problem:
        with suppress(OSError, ValueError):  # the worker has gone
            _say(answers, {"disagreement": problem})


def _say(answers: BinaryIO, reply: dict[str, str]) -> None:
    answers.write(json.dumps(reply).encode() + b"\n")
    answers.flush()


def main(words: list[str]) -> int:
    """Serve until the worker ends it."""
    settings = json.loads(Path(words[0]).read_text())
    # Messages may be nested deeply, and each thread reads them.
    sys.setrecursionlimit(20_000)
    threading.stack_size(64 << 20)
    control = socket.socket(socket.AF_UNIX)
    # Paths may be too long for a socket.
    os.chdir(settings["folder"])
    control.bind(CONTROL)
    control.listen(1)
    record = Record(RECORD, settings.get("descriptions") or {})
    os.chdir(settings["door_folder"])
    prepare, end = serve(settings, record)
    os.chdir(settings["workspace"])
    worker = control.accept()[0]
    with worker.makefile("rb") as commands, worker.makefile("wb") as answers:
        obey(commands, answers, prepare, record)
        end()
        record.close()
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    # Threads may still wait for servers.
    os._exit(status)
