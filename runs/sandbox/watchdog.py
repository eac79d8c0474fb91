"""Limit a whole process tree's memory, process count and disk use."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import psutil

from runs.sandbox.process_tree import LiveProcess
from runs.sandbox.profiles import ProcessLimits
from runs.sandbox.safe_walk import disk_usage

INTERVAL_SECONDS = 0.2


class WorkerMemory:
    """Latest memory use of each of this worker's commands."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._used: dict[int, int] = {}

    def exceeded(self, root: int, used: int, limit: int) -> str:
        """Record the memory use of `root`. Return why to stop it, empty unless it is the largest over the limit."""
        with self._lock:
            self._used[root] = used
            together = sum(self._used.values()) + psutil.Process().memory_info().rss
            if together <= limit or used < max(self._used.values()):
                return ""
        return (
            f"The commands of this worker used more than {_megabytes(limit)} of memory together. "
            f"This one used the most, {_megabytes(used)}, and was ended."
        )

    def forget(self, root: int) -> None:
        """Forget a command that has ended."""
        with self._lock:
            self._used.pop(root, None)


def exceeded_limit(limits: ProcessLimits, tree: Sequence[LiveProcess]) -> str:
    """Return a sentence on the exceeded limit, or an empty text."""
    if limits.processes is not None and len(tree) > limits.processes:
        return f"The command ran more than {limits.processes} processes at once and was ended."
    if limits.rss_bytes is not None and resident(tree, enough=limits.rss_bytes) > limits.rss_bytes:
        return too_much_memory(limits.rss_bytes)
    if _disk_exceeded(limits):
        return f"The command wrote more than {_megabytes(limits.disk_bytes or 0)} to disk and was ended."
    return ""


def too_much_memory(limit: int) -> str:
    """Return the sentence for a command over its limit of memory."""
    return f"The command used more than {_megabytes(limit)} of memory and was ended."


def resident(tree: Sequence[LiveProcess], *, enough: int) -> int:
    """Return the memory of processes; count shared pages once if the sum could exceed `enough`."""
    used = sum(process.rss_bytes for process in tree)
    return used if used <= enough else sum(map(_own_share, tree))


def _own_share(process: LiveProcess) -> int:
    try:
        return int(process.process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        # It ended after it was listed, and its pages were perhaps shared.
        return 0
    except (psutil.Error, AttributeError):
        # Other users' processes and other systems report only this.
        return process.rss_bytes


def _disk_exceeded(limits: ProcessLimits) -> bool:
    if limits.disk_bytes is None:
        return False
    left = limits.disk_bytes
    for folder in limits.disk:
        left -= disk_usage(folder, enough=left)
        if left < 0:
            return True
    return False


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MB"
