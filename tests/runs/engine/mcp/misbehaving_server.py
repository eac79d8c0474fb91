"""An MCP server on standard input and output that misbehaves on demand and logs each call to LOG_URL.

It needs nothing but the standard library, and shares no code with evalhub.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.request
from typing import Any

SENDING = threading.Lock()
KEY = {"key": {"type": "string"}}
SCHEMA = {"type": "object", "properties": KEY, "required": ["key"]}
NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": name, "inputSchema": SCHEMA}
    for name in ("echo", "fail", "refuse", "late", "never", "crash", "grow", "big", "noise", "get_item")
]
TOOLS.append({"name": "shape", "description": "shape", "inputSchema": SCHEMA, "outputSchema": NUMBER})


def send(message: dict[str, Any]) -> None:
    with SENDING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def log(tool: str, arguments: dict[str, Any], end: str) -> None:
    entry = {"pid": os.getpid(), "tool": tool, "key": arguments.get("key"), "end": end}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(os.environ["LOG_URL"], json.dumps(entry).encode(), timeout=20).read()


def call(id: Any, tool: str, arguments: dict[str, Any]) -> None:
    result: dict[str, Any] = {"content": [{"type": "text", "text": str(arguments.get("key"))}]}
    if tool in ("fail", "refuse", "never", "crash", "shape"):
        log(tool, arguments, "is_error" if tool == "fail" else "protocol")
    if tool == "fail":
        result["isError"] = True
    elif tool == "refuse":
        return send({"id": id, "error": {"code": -32603, "message": "refused"}})
    elif tool == "never":
        return None
    elif tool == "crash":
        os._exit(7)
    elif tool == "shape":
        result["structuredContent"] = {"n": "three"}
    elif tool == "late":
        time.sleep(1.2)
    elif tool == "big":
        result["content"][0]["text"] = "x" * 250_000
    elif tool == "noise":
        with SENDING:
            sys.stdout.write('Loading…\n{"half": \n[1, 2]\nnull\n')
    elif tool == "grow":
        TOOLS.append({"name": "grown", "description": "grown", "inputSchema": SCHEMA})
        send({"method": "notifications/tools/list_changed"})
    elif tool not in ("echo", "get_item", "grown"):
        log(tool, arguments, "unknown_tool")
        return send({"id": id, "error": {"code": -32602, "message": f"Unknown tool: {tool}"}})
    if tool not in ("fail", "shape"):
        log(tool, arguments, "")
    return send({"id": id, "result": result})


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        id, method, params = asked.get("id"), asked.get("method"), asked.get("params") or {}
        if id is None or method is None:
            continue
        if method == "initialize":
            about = {"name": "misbehaving", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            version = params.get("protocolVersion", "2025-06-18")
            send(
                {
                    "id": id,
                    "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about},
                }
            )
        elif method == "tools/list":
            send({"id": id, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            given = (id, str(params.get("name")), params.get("arguments") or {})
            threading.Thread(target=call, args=given, daemon=True).start()
        elif method == "ping":
            send({"id": id, "result": {}})
        else:
            send({"id": id, "error": {"code": -32601, "message": f"no method {method}"}})


main()
