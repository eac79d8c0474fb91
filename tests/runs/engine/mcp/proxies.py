"""The proxy of an MCP server as the worker starts it, its connections, and an agent behind it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaluators.tool_use.mcp_record import RecordedRequest, read_mcp_record
from runs.engine.mcp import mcp_connect, mcp_proxy

ASKED = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "search", "arguments": {"a": 1}},
}


class Connection:
    """A connection of an agent: lines in both directions."""

    def __init__(self, path: Path) -> None:
        self.socket = connected(path)
        self.socket.settimeout(20)
        self.lines = self.socket.makefile("rb")

    def send(self, *lines: bytes) -> None:
        self.socket.sendall(b"".join(lines))

    def read(self) -> bytes:
        return self.lines.readline()

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


class Proxy:
    """The proxy as the worker starts it, and its two sockets."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        for name in ("server", "door", "workspace"):
            (folder / name).mkdir()
        places = {"folder": "server", "door_folder": "door", "workspace": "workspace"}
        file = folder / "server" / "settings.json"
        file.write_text(json.dumps({**{key: str(folder / name) for key, name in places.items()}, **settings}))
        self.process = subprocess.Popen([sys.executable, "-IS", mcp_proxy.__file__, str(file)])
        self.control = Connection(folder / "server" / mcp_proxy.CONTROL)
        self.opened = [self.control]

    def wait(self, seconds: float = 10.0) -> str:
        """Let it start the server; return why it is not ready, empty if it is."""
        self.control.send(f"{seconds}\n".encode())
        return str(json.loads(self.control.read())["problem"])

    def connect(self) -> Connection:
        self.opened.append(Connection(self.folder / "door" / mcp_proxy.DOOR))
        return self.opened[-1]

    def end(self) -> list[dict[str, Any]]:
        """End it and return the lines of its record."""
        self.control.send(b"end\n")
        assert self.process.wait(20) == 0
        content = (self.folder / "server" / mcp_proxy.RECORD).read_bytes()
        return [json.loads(line) for line in content.splitlines()]


def connected(path: Path) -> socket.socket:
    """Connect to a socket as soon as there is one."""
    for _ in range(400):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
            return connection
        except OSError:
            connection.close()
            time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


@contextmanager
def running(folder: Path, **settings: Any) -> Iterator[Proxy]:
    proxy = Proxy(folder, **settings)
    try:
        yield proxy
    finally:
        proxy.process.kill()
        proxy.process.wait()
        for each in proxy.opened:
            each.close()


def line_of(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def asked(folder: Path, *lines: bytes, **settings: Any) -> tuple[list[bytes], tuple[RecordedRequest, ...]]:
    """Send lines on one connection; return what came back for each, and the recorded calls."""
    with running(folder, **settings) as proxy:
        connection = proxy.connect()
        came = []
        for line in lines:
            connection.send(line)
            came.append(connection.read())
        connection.close()
        proxy.end()
        return came, read_mcp_record((folder / "server" / mcp_proxy.RECORD).read_bytes())


CLIENT = f"""
import http.client, json, sys
connection = http.client.HTTPConnection(sys.argv[1].split("/")[2])
connection.request("POST", "/mcp", {json.dumps(json.dumps(ASKED))}, {{"content-type": "application/json"}})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
connection.request("GET", "/.well-known/oauth-protected-resource")
print(connection.getresponse().status)
sys.exit(5)
"""


def over_http(tmp_path: Path, url: str, client: str = CLIENT) -> Any:
    """Run an agent with its connection to the proxy; return its process and the recorded calls."""
    with running(tmp_path, url=url) as proxy:
        shutil.copy(mcp_connect.__file__, tmp_path / "door" / "connect.py")
        (tmp_path / "config.json").write_text("{}")
        words = [sys.executable, "-IS", tmp_path / "door" / "connect.py", tmp_path / "config.json", "--"]
        agent = [sys.executable, "-c", client, mcp_connect.MCP_ADDRESS]
        ended = subprocess.run([*words, *agent], capture_output=True, text=True, timeout=30)
        record = proxy.end()
    return ended, read_mcp_record(b"".join(line_of(each) for each in record))
