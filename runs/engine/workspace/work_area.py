"""The directory in which a process creates the folders of its trials.

Each process has its own, with a locked file beside it while it runs. The next process removes the directories of
killed processes; those of another machine only after a week, because not every network drive shows locks of others.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import secrets
import threading
import time
from functools import cache
from pathlib import Path
from socket import gethostname

from runs.sandbox.safe_walk import remove_tree

logger = logging.getLogger(__name__)

_LOCK = ".lock"
_making = threading.Lock()


def own_area(root: Path) -> Path:
    """Return this process's directory under `root`; create both if missing."""
    with _making:
        return _area(root, os.getpid())


@cache
def _area(root: Path, _process: int) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    area = root / f"process-{secrets.token_hex(8)}@{gethostname()}"
    # Locked before the directory exists: without a lock it would count as abandoned.
    lock = os.open(_lock_of(area), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        area.mkdir(mode=0o700)
    except OSError:
        # On a full disk every trial retries.
        _lock_of(area).unlink(missing_ok=True)
        os.close(lock)
        raise
    atexit.register(_give_up, area, lock, os.getpid())
    _remove_left(root)
    return area


def _lock_of(area: Path) -> Path:
    return area.with_name(f"{area.name}{_LOCK}")


def _give_up(area: Path, lock: int, process: int) -> None:
    """Remove the area when its process ends, but not in forked processes."""
    if os.getpid() == process:
        _clear(area)
        os.close(lock)


def _remove_left(root: Path) -> None:
    """Remove the areas of processes that have ended."""
    for area in filter(_may_be_left, root.glob("process-*@*")):
        try:
            lock = os.open(_lock_of(area), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            logger.warning("%s cannot be read: %s", area, error)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _clear(area)
        except BlockingIOError:
            # Its process is running.
            continue
        finally:
            os.close(lock)


def _may_be_left(area: Path) -> bool:
    """Return whether the lock shows that the area is abandoned. Every trial updates the directory's time."""
    if area.name.endswith(_LOCK):
        return False
    if area.name.endswith(f"@{gethostname()}"):
        return True
    try:
        # Age after which directories of another machine are removed.
        return time.time() - area.stat().st_mtime > 7 * 24 * 3600.0
    except FileNotFoundError:
        # Another process was faster.
        return False


def _clear(area: Path) -> None:
    """Remove a locked area, and its lock last."""
    try:
        remove_tree(area)
        _lock_of(area).unlink(missing_ok=True)
    except OSError as error:
        # No trial depends on it; the log shows what uses the disk.
        logger.warning("%s was not removed: %s", area, error)
