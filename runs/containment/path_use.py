"""What a target does with a path of a worker's machine."""

from __future__ import annotations

from enum import StrEnum


class Use(StrEnum):
    """As a word for sentences."""

    READ = "read"
    WORK = "work in"
    WRITE = "write to"
    RUN = "run"
