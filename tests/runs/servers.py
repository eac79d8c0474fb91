"""Real HTTP servers on loopback, made of one function that answers."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from evaluators.model import Json


@dataclass
class Request:
    """What came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        return json.loads(self.body)


@dataclass
class Reply:
    """What goes out: a value as JSON, or pieces as they are."""

    value: Json = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pieces: tuple[bytes, ...] | None = None
    delay: float = 0.0
    """Seconds before the answer and between its pieces."""


@dataclass
class Server:
    """A server and what it was asked so far."""

    port: int
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # Five connections wait by default; more at once would be reset.
    request_queue_size = 128


@contextmanager
def serving(answer: Callable[[Request], Reply] | Reply) -> Iterator[Server]:
    """Serve in a thread until the block is left, however it is left."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, body)
            server.requests.append(request)
            self._send(answer if isinstance(answer, Reply) else answer(request))

        do_GET = do_POST = do_PUT = _answer

        def _send(self, reply: Reply) -> None:
            pieces = reply.pieces if reply.pieces is not None else (json.dumps(reply.value).encode(),)
            try:
                time.sleep(reply.delay)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    time.sleep(reply.delay)
            except OSError:  # whoever asked has gone
                return

        def log_message(self, *_: Any) -> None: ...

    with _Listener(("127.0.0.1", 0), Handler) as listener:
        server = Server(listener.server_port)
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            # Also where the block fails: over a closed socket the loop would turn without a pause.
            listener.shutdown()
            thread.join()
