"""Where a process makes the directories of its trials.

Each has a directory of its own, with a locked file beside it for as long as it lives. What a process that was killed
has left is removed by the next one that works there; of another machine only after a week, for not every network
drive tells of the locks of others.
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

from runs.containment.trees import remove

logger = logging.getLogger(__name__)

FOREIGN_SECONDS = 7 * 24 * 3600.0
"""What another machine has left is removed after so long."""
_LOCK = ".lock"
_making = threading.Lock()


def own_area(root: Path) -> Path:
    """Return this process's directory under `root`, which is made where it is not there yet."""
    with _making:
        return _area(root, os.getpid())


@cache
def _area(root: Path, _process: int) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    area = root / f"process-{secrets.token_hex(8)}@{gethostname()}"
    # Locked before the directory is there: without its lock it would be taken for one that was left.
    lock = os.open(_lock_of(area), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        area.mkdir(mode=0o700)
    except OSError:
        # On a full disk it is tried with every trial.
        _lock_of(area).unlink(missing_ok=True)
        os.close(lock)
        raise
    atexit.register(_give_up, area, lock, os.getpid())
    _remove_left(root)
    return area


def _lock_of(area: Path) -> Path:
    return area.with_name(f"{area.name}{_LOCK}")


def _give_up(area: Path, lock: int, process: int) -> None:
    """Remove the area as its process ends; a process that was forked from it leaves it alone."""
    if os.getpid() == process:
        _clear(area)
        os.close(lock)


def _remove_left(root: Path) -> None:
    """Remove the areas of processes that are gone."""
    for area in filter(_may_be_left, root.glob("process-*@*")):
        try:
            lock = os.open(_lock_of(area), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            logger.warning("%s cannot be looked at: %s", area, error)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _clear(area)
        except BlockingIOError:
            # Its process lives.
            continue
        finally:
            os.close(lock)


def _may_be_left(area: Path) -> bool:
    """Tell whether its lock says if the area's process lives. A directory is touched with every trial in it."""
    if area.name.endswith(_LOCK):
        return False
    if area.name.endswith(f"@{gethostname()}"):
        return True
    try:
        return time.time() - area.stat().st_mtime > FOREIGN_SECONDS
    except FileNotFoundError:
        # Another process was quicker.
        return False


def _clear(area: Path) -> None:
    """Remove an area whose lock is held, and the lock last."""
    try:
        remove(area)
        _lock_of(area).unlink(missing_ok=True)
    except OSError as error:
        # Nobody's trial depends on it; the operator finds where the disk went.
        logger.warning("%s was not removed: %s", area, error)
