"""How a target uses a path on a worker."""

from __future__ import annotations

from enum import StrEnum


class Use(StrEnum):
    """Verbs for sentences."""

    READ = "read"
    WORK = "work in"
    WRITE = "write to"
    RUN = "run"
