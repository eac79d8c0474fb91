"""What a worker process is called wherever people see it."""

from __future__ import annotations

import os
import socket

LONGEST_NAME = 200


def worker_name() -> str:
    """Return this process's name: its host and process number."""
    return f"{socket.gethostname()}:{os.getpid()}"[:LONGEST_NAME]
