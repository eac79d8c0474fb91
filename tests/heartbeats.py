"""Threads of trials that outlive a test by a moment."""

from __future__ import annotations

import threading


def end_heartbeats() -> None:
    """Wait until heartbeats have ended: each has a connection to the test database."""
    for thread in threading.enumerate():
        if thread.name == "heartbeat":
            thread.join(60)
