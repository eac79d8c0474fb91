"""The agent's connection to the proxy of the MCP server under test.

Runs as a program of its own in the agent's sandbox, from a folder that the agent can't write to, so it imports only the
standard library. `python mcp_connect.py` passes bytes between standard input and output and the proxy's socket beside the
program. `python mcp_connect.py CONFIG -- AGENT …` serves the socket on a port of loopback while the agent runs, with its
address in place of `MCP_ADDRESS` in the file CONFIG, the agent's words and variables.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

MCP_ADDRESS = "http://evalhub-mcp.invalid/mcp"
"""Stands for the address, whose port is known only when the program runs."""
DOOR = "door"
"""The socket's name."""
_AT_ONCE = 1 << 16


def connect() -> socket.socket:
    """Return a connection to the proxy. The working folder is left alone: a path may be too long for a socket."""
    folder = os.open(os.path.dirname(os.path.abspath(__file__)), os.O_RDONLY)  # noqa: PTH100, PTH120
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"/proc/self/fd/{folder}/{DOOR}")
        return connection
    finally:
        os.close(folder)


def over_stdio() -> int:
    """Pass bytes on until the proxy closes the connection."""
    connection = connect()
    threading.Thread(target=_send, args=(connection,), daemon=True).start()
    while content := connection.recv(_AT_ONCE):
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    return 0


def _send(connection: socket.socket) -> None:
    try:
        while content := os.read(0, _AT_ONCE):
            connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the proxy has gone


def over_http(config: Path, agent: list[str]) -> int:
    """Serve on loopback while the agent runs; return the agent's exit code."""
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(server,), daemon=True).start()
    address = f"http://127.0.0.1:{server.getsockname()[1]}/mcp"

    def placed(text: str) -> str:
        return text.replace(MCP_ADDRESS, address)

    config.write_text(placed(config.read_text()))
    env = {name: placed(value) for name, value in os.environ.items()}
    code = subprocess.run([placed(word) for word in agent], env=env).returncode
    return code if code >= 0 else 128 - code


def _accept(server: socket.socket) -> None:
    while True:
        one = server.accept()[0]
        # Each piece goes out at once: a kept connection would wait for an acknowledgement between two.
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            other = connect()
        except OSError:
            one.close()
            continue
        for source, target in ((one, other), (other, one)):
            threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while content := source.recv(_AT_ONCE):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one side has gone


def main(words: list[str]) -> int:
    """Pass on over HTTP around an agent if one is given, else over standard input and output."""
    return over_http(Path(words[0]), words[2:]) if words else over_stdio()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
