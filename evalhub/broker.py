"""Where the embedded broker listens."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

LONGEST_SOCKET_PATH = 107
"""Bytes in `sockaddr_un.sun_path`, less the closing zero."""


def broker_directory(data: Path) -> Path:
    """Return the private directory of the embedded broker; a short one where `data` is too deep for a socket."""
    inside = data / "broker"
    if len(os.fsencode(inside / "valkey.sock")) <= LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    return (
        Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"evalhub-{os.getuid()}-{digest}"
    )


def embedded_broker_url(data: Path) -> str:
    """Return the address of the embedded broker as Celery takes it."""
    return f"redis+socket://{broker_directory(data) / 'valkey.sock'}?virtual_host=0"
