"""Looks after what resource limits of single processes cannot: a whole tree's memory, number and disk use."""

from __future__ import annotations

import os
from pathlib import Path

from runs.containment.profiles import Limits
from runs.providers.process_tree import Process

INTERVAL_SECONDS = 0.2
_ENTRIES = 200_000


def exceeded(limits: Limits, tree: list[Process]) -> str:
    """Return in a sentence which limit is exceeded, or an empty text."""
    used = sum(process.rss_bytes for process in tree)
    if limits.rss_bytes is not None and used > limits.rss_bytes:
        return f"The command used more than {_megabytes(limits.rss_bytes)} of memory and was ended."
    if limits.processes is not None and len(tree) > limits.processes:
        return f"The command ran more than {limits.processes} processes at once and was ended."
    if _disk_exceeded(limits):
        return f"The command wrote more than {_megabytes(limits.disk_bytes or 0)} to the workspace and was ended."
    return ""


def _disk_exceeded(limits: Limits) -> bool:
    if limits.disk_bytes is None or limits.disk is None:
        return False
    return disk_usage(limits.disk, enough=limits.disk_bytes) > limits.disk_bytes


def disk_usage(directory: Path, *, enough: int) -> int:
    """Bytes that a directory takes on disk, counted no further than just over `enough`."""
    total = entries = 0
    waiting = [str(directory)]
    while waiting and total <= enough:
        try:
            found = list(os.scandir(waiting.pop()))
        except OSError:  # gone, or closed to us, since it was listed
            continue
        for entry in found:
            entries += 1
            total += _size(entry)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
        if entries > _ENTRIES:
            return enough + 1
    return total


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except OSError:  # gone since it was listed
        return 0


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MB"
