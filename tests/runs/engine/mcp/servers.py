"""The server of notes over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOTES_SERVER = Path(__file__).with_name("notes_server.py")


@contextmanager
def serving(folder: Path, over: str = "mcp") -> Iterator[str]:
    """Serve notes on loopback over `mcp` or `sse`, kept in a folder; yield the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, str(NOTES_SERVER), str(port), over]
    with subprocess.Popen(
        words, cwd=folder, env={"NOTES_OWNER": "Ada"}, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(200):
                with socket.socket() as asked:
                    if asked.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/{over}"
        finally:
            process.kill()
