"""The servers of this folder over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOTES_SERVER = Path(__file__).with_name("notes_server.py")
ERAS_SERVER = Path(__file__).with_name("eras_server.py")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve notes on loopback, kept in a folder; yield the address."""
    with listening(folder, sys.executable, str(NOTES_SERVER), "PORT") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def serving_eras(folder: Path, mode: str) -> Iterator[str]:
    """Serve shelves on loopback in a mode; yield the address."""
    with listening(folder, sys.executable, str(ERAS_SERVER), mode, "PORT") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def listening(folder: Path, *command: str) -> Iterator[int]:
    """Run a server's command with a free port in place of PORT, until it listens; yield the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(port) if word == "PORT" else word for word in command]
    with subprocess.Popen(
        words, cwd=folder, env={"NOTES_OWNER": "Ada"}, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(600):
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield port
        finally:
            process.kill()
