"""Read how much memory a worker may use."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

# Where a container finds its own limit: cgroup v2, then v1.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_of_machine(limits: tuple[Path, ...] = _LIMITS) -> int:
    """Return the machine's memory in bytes, or the container's limit if lower."""
    total = int(psutil.virtual_memory().total)
    for path in limits:
        # "max" means no limit.
        with suppress(OSError, ValueError):
            total = min(total, int(path.read_text()))
    return total
