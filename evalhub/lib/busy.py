"""What a server says when it can't do something now."""

from __future__ import annotations


class TryLater(Exception):
    """Something is busy; the message says so, and that it is worth to try again. Pages and REST answer with 503."""
