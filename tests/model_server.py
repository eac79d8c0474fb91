"""A server that speaks as OpenAI, Azure OpenAI and Anthropic do, and fails on request: real HTTP on loopback."""

from __future__ import annotations

import email.parser
import email.policy
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.model_answers import (
    Answer,
    Batch,
    Broken,
    Failure,
    Script,
    Seen,
    anthropic_body,
    gemini_body,
    last_text,
    openai_body,
)

__all__ = ["Answer", "Batch", "Broken", "Failure", "ModelServer", "Script", "serving"]


class Handler(BaseHTTPRequestHandler):
    """One request; `script` is the server's."""

    protocol_version = "HTTP/1.1"
    # Unbuffered answers and Nagle's algorithm would cost 40 ms each.
    wbufsize = -1
    disable_nagle_algorithm = True
    script: Script

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        form = (self.headers.get("content-type") or "").startswith("multipart/")
        body = self._form(raw) if form else json.loads(raw or b"null")
        self.script.seen.append(
            Seen("POST", self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        )
        path = self.path.split("?")[0]
        if path.endswith("/chat/completions"):
            self._answer(body, openai_body)
        elif path.endswith(("/files", "/batches")):
            self._hand_in(path, body)
        elif path.endswith("/cancel"):
            self._look(self.script.batches[path.split("/")[-2]], anthropic="messages" in path)
        elif path.endswith("/messages"):
            self._answer(body, anthropic_body)
        elif path.endswith(":generateContent"):
            self._answer(self._from_gemini(path, body), gemini_body)
        else:
            self._json({"error": {"message": f"no such address: {path}"}}, 404)

    def do_GET(self) -> None:
        self.script.seen.append(Seen("GET", self.path, {k.lower(): v for k, v in self.headers.items()}, None))
        path = self.path.split("?")[0]
        parts = path.strip("/").split("/")
        if path.endswith("/content"):
            self._bytes(self.script.files[parts[-2]], "application/octet-stream")
        elif path.endswith("/results"):
            self._bytes(self._results(self.script.batches[parts[-2]], anthropic=True), "application/x-jsonl")
        elif parts[-2] == "batches" and parts[-1] in self.script.batches:
            self._look(self.script.batches[parts[-1]], anthropic="messages" in parts)
        else:
            self._json({"error": {"message": f"no such address: {path}"}}, 404)

    def _from_gemini(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        text = "".join(part.get("text", "") for part in body["contents"][-1]["parts"])
        model = path.rpartition("/")[2].removesuffix(":generateContent")
        return {"model": model, "messages": [{"content": text}]}

    def _answer(self, body: dict[str, Any], shape: Callable[[str, Answer], dict[str, Any]]) -> None:
        script = self.script
        turn = script.turns.pop(0) if script.turns else script.answer(last_text(body))
        if isinstance(turn, Answer):
            self._json(shape(body.get("model") or "deployed", turn))
        else:
            self._fail(turn)

    def _fail(self, turn: Failure | Broken) -> None:
        if isinstance(turn, Failure):
            error = {"message": turn.message, "type": "scripted", "code": str(turn.status)}
            self._json({"error": error}, turn.status, turn.headers)
        elif turn.how == "malformed":
            self._bytes(b'{"id": "chatcmpl-1", "choi', "application/json")
        elif turn.how == "silent":
            self.script.released.wait(turn.seconds)
            self.close_connection = True
        else:
            # A reset, not an orderly end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def _hand_in(self, path: str, body: dict[str, Any]) -> None:
        script = self.script
        if script.submitting:
            turn = script.submitting.pop(0)
            if not isinstance(turn, Answer):
                return self._fail(turn)
        if path.endswith("/files"):
            id = f"file-{len(script.files) + 1}"
            script.files[id] = body["file"].encode()
            return self._json(self._file(id, body["purpose"]))
        id = f"batch_{len(script.batches) + 1}"
        if "requests" in body:
            script.batches[id] = Batch(id, body["requests"], {})
        else:
            lines = script.files[body["input_file_id"]].decode().splitlines()
            script.batches[id] = Batch(id, [json.loads(line) for line in lines], body.get("metadata") or {})
        return self._look(script.batches[id], anthropic="requests" in body)

    def _look(self, batch: Batch, *, anthropic: bool) -> None:
        script = self.script
        script.looking()
        done = batch.looks > script.looks_until_done
        batch.looks += 1
        if anthropic:
            return self._json(self._message_batch(batch, done))
        status = script.batch_status if done else "in_progress"
        output = f"{batch.id}-output"
        if status in ("completed", "expired"):
            script.files[output] = self._results(batch, anthropic=False)
        errors = {"object": "list", "data": [{"code": "bad", "message": "The file was refused", "line": 1}]}
        return self._json(
            {
                "id": batch.id,
                "object": "batch",
                "endpoint": "/v1/chat/completions",
                "input_file_id": "file-1",
                "completion_window": "24h",
                "status": status,
                "created_at": 1,
                "metadata": batch.metadata,
                "output_file_id": output if status in ("completed", "expired") else None,
                "errors": errors if status == "failed" else None,
            }
        )

    def _message_batch(self, batch: Batch, done: bool) -> dict[str, Any]:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if done else "in_progress",
            "request_counts": counts,
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z",
            "ended_at": "2026-01-01T00:01:00Z" if done else None,
            "results_url": None,
        }

    def _results(self, batch: Batch, *, anthropic: bool) -> bytes:
        """Return the results of a batch, the last request's first: the order means nothing."""
        rows = [self._result(request, anthropic) for request in reversed(batch.requests)]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()

    def _result(self, request: dict[str, Any], anthropic: bool) -> dict[str, Any]:
        body = request["params" if anthropic else "body"]
        text = last_text(body)
        turn = self.script.answer(text)
        failed = text in self.script.batch_errors or not isinstance(turn, Answer)
        id = request["custom_id"]
        if anthropic:
            error = {"type": "errored", "error": {"type": "error", "error": {"message": "refused"}}}
            shaped = (
                error if failed else {"type": "succeeded", "message": anthropic_body(body["model"], turn)}
            )
            return {"custom_id": id, "result": shaped}
        if failed:
            response = {"status_code": 400, "body": {"error": {"message": "refused"}}}
        else:
            response = {"status_code": 200, "body": openai_body(body["model"], turn)}
        return {"id": f"r-{id}", "custom_id": id, "response": response, "error": None}

    def _file(self, id: str, purpose: str) -> dict[str, Any]:
        about = {"id": id, "object": "file", "bytes": len(self.script.files[id]), "created_at": 1}
        return {**about, "filename": "batch.jsonl", "purpose": purpose, "status": "processed"}

    def _form(self, raw: bytes) -> dict[str, str]:
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + raw)
        return {
            str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True).decode()
            for part in message.iter_parts()
        }

    def _json(self, value: Any, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> None:
        self._bytes(json.dumps(value).encode(), "application/json", status, headers)

    def _bytes(
        self, content: bytes, kind: str, status: int = 200, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        # litellm makes a client for each request about a batch, and leaves it open to the garbage collector.
        last = [("connection", "close")] if "/files" in self.path or "/batches" in self.path else []
        self.send_response(status)
        for name, value in (("content-type", kind), ("content-length", str(len(content))), *headers, *last):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Say nothing: the script remembers what was asked."""


class Server(ThreadingHTTPServer):
    """Quiet about clients that hang up, which is what some tests make them do."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave a broken connection be."""


@dataclass(frozen=True)
class ModelServer:
    """A running server: its address and its script."""

    url: str
    script: Script


@contextmanager
def serving() -> Iterator[ModelServer]:
    """Serve on a free port of loopback while the block runs."""
    script = Script()
    server = Server(("127.0.0.1", 0), type("ScriptedHandler", (Handler,), {"script": script}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield ModelServer(f"http://127.0.0.1:{server.server_port}", script)
    finally:
        script.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
