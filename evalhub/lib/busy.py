"""What a server says when it can't do something now, and for whom it works."""

from __future__ import annotations

from contextvars import ContextVar

asking_project: ContextVar[int | None] = ContextVar("asking_project", default=None)
"""The key of the project that the current request is about; every request about one sets it."""


class TryLater(Exception):
    """Something is busy; the message says so, and that it is worth to try again. Pages and REST answer with 503."""
