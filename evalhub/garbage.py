"""When this process looks for garbage; see docs/decisions/0012-processes-rarely-collect.md."""

from __future__ import annotations

import gc

NEW_OBJECTS = 50_000


def collect_rarely() -> None:
    """Look for garbage after this many new objects instead of 700."""
    gc.set_threshold(NEW_OBJECTS)


def keep_all() -> None:
    """Take nothing that exists now for garbage, because it stays, or the process is about to exit."""
    gc.freeze()
