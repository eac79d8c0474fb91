"""An MCP server of the revision 2026-07-28, on standard input and output or on a port of loopback.

`python eras_server.py MODE [PORT]`. Modes: `later` knows no `initialize`; `both` speaks both eras; `locked` speaks the one of
its first message; `ends` ends at an `initialize`; `next` speaks another revision. It needs nothing but the standard library,
and shares no code with evalhub.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODE = sys.argv[1]
SPOKEN = "2027-01-01" if MODE == "next" else "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
SHELF = {"type": "string", "x-mcp-header": "Shelf"}
SCHEMA = {"type": "object", "properties": {"shelf": SHELF}, "required": ["shelf"]}
FIRST: list[str] = []


class Refused(Exception):
    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    asked = (params.get("_meta") or {}).get(f"{PREFIX}protocolVersion")
    era = "later" if asked else "earlier"
    FIRST.append(era)
    if MODE == "locked" and era != FIRST[0]:
        raise Refused(-32600, f"this connection is of the {FIRST[0]} era")
    if MODE == "ends" and era == "earlier":
        sys.exit(3)
    if (era == "earlier" and MODE in ("later", "next")) or (asked and asked != SPOKEN):
        raise Refused(-32022, "unsupported protocol version", supported=[SPOKEN])
    about = {"name": "shelves", "version": "3"}
    if method == "initialize":
        hello = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
        return {**hello, "instructions": "Earlier words."}
    done = {"resultType": "complete", "_meta": {f"{PREFIX}serverInfo": about}}
    if method == "server/discover":
        return {**done, "supportedVersions": [SPOKEN], "capabilities": {}, "instructions": "Later words."}
    if method == "tools/list":
        return {**done, "tools": [{"name": "put", "description": "Put.", "inputSchema": SCHEMA}]}
    if method != "tools/call":
        raise Refused(-32601, f"no method {method}")
    shelf = params["arguments"]["shelf"]
    if shelf == "which" and "inputResponses" not in params:
        asking = {"method": "elicitation/create", "params": {"message": "Which?"}}
        return {"resultType": "input_required", "requestState": "s", "inputRequests": {"q": asking}}
    return {**done, "content": [{"type": "text", "text": f"put on {shelf}"}]}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        return {**reply, "result": result_of(message["method"], message.get("params") or {})}
    except Refused as refused:
        return {**reply, "error": refused.error}


class Web(BaseHTTPRequestHandler):
    """Checks the headers that mirror the body."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            return self.say(202, b"")
        params = message.get("params") or {}
        wanted = {"mcp-method": message["method"]}
        if message["method"] == "tools/call":
            wanted |= {"mcp-name": params["name"], "mcp-param-shelf": params["arguments"]["shelf"]}
        FIRST.clear()
        if "_meta" in params and any(self.headers.get(name) != value for name, value in wanted.items()):
            error = {"code": -32020, "message": "headers and body differ"}
            return self.say(400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        if message["method"] == "subscriptions/listen":
            return self.listen()
        found = answer(message)
        status = {-32022: 400, -32601: 404}.get(found.get("error", {}).get("code"), 200)
        return self.say(status, json.dumps(found).encode())

    def listen(self) -> None:
        """Acknowledge a subscription and end it."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        note = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}
        self.wfile.write(f"data: {json.dumps(note)}\n\n".encode())
        self.close_connection = True

    def do_GET(self) -> None:
        self.say(405, b"")

    def say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if len(sys.argv) > 2:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Web).serve_forever()
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        print(json.dumps(answer(asked)), flush=True)
