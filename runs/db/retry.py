"""Retry short database work on a fresh connection while the server is away; log one line a minute."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections

from evalhub.lib.disk_errors import is_database_full
from evalhub.lib.numbers import format_count
from runs.db.disk import cannot_store, storage_guard

logger = logging.getLogger(__name__)

LOG_SECONDS = 60.0
"""Least seconds between two lines about it: dozens of threads try again every second."""
MOST_NAMED = 20


class Outage:
    """The failed attempts of this process, and the trials whose results wait to be recorded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._logged = float("-inf")
        self._waiting: set[int] = set()
        self._ending = threading.Event()

    def note(self, error: BaseException) -> None:
        """Log that the database is away, with the trials that wait for it, unless that was logged lately."""
        with self._lock:
            now = self._clock()
            if now - self._logged < LOG_SECONDS:
                return
            self._logged = now
            waiting = sorted(self._waiting)
        reason = " ".join(str(error).split()) or type(error).__name__
        logger.warning("The database is away, retrying: %s.%s", reason.rstrip("."), _name_trials(waiting))

    def add(self, trial_id: int) -> None:
        """Name this trial in the log until `remove`."""
        with self._lock:
            self._waiting.add(trial_id)

    def remove(self, trial_id: int) -> None:
        """Name this trial no more."""
        with self._lock:
            self._waiting.discard(trial_id)

    def end_waiting(self) -> None:
        """Let every thread stop waiting, because the process is asked to end."""
        self._ending.set()

    def may_wait(self) -> bool:
        """Return whether the process goes on: a thread that waits must not outlive its main thread."""
        return not self._ending.is_set() and threading.main_thread().is_alive()


def _name_trials(trials: list[int]) -> str:
    if not trials:
        return ""
    numbers = ", ".join(map(str, trials[:MOST_NAMED])) + (", …" if len(trials) > MOST_NAMED else "")
    return f" Results of {format_count(len(trials), 'trial')} wait to be recorded: {numbers}."


outage = Outage()
"""The state for this process."""


FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
SQLITE_BUSY = (5, 6)
"""SQLITE_BUSY and SQLITE_LOCKED."""

T = TypeVar("T")


def is_connection_lost(error: BaseException) -> bool:
    """Return whether the same work may succeed on another connection; never for errors in data or SQL."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    if code is not None:
        # The extended code's lowest byte is the plain one.
        return code & 0xFF in SQLITE_BUSY
    state = getattr(error.__cause__, "sqlstate", None)
    # SQLSTATEs, or their beginnings: connection lost, transaction rolled back, server restarting, server
    # busy.
    return state is None or state.startswith(("08", "40", "57P", "53300", "55P03"))


def retry_when_lost(
    work: Callable[[], T],
    *,
    committed: Callable[[], T | None] = lambda: None,
    may_wait: Callable[[], bool] | None = None,
) -> T:
    """Return what `work` returns; run it again while the connection is lost, for the length of a lease.

    `work` must be one transaction, or safe to repeat. A server can commit and fail before it answers, so `committed` is called
    before each retry: it returns what an earlier attempt stored, or None. After a lease's length the error is
    raised, because another worker may have the work. While the database's disk is full there is no limit: no other
    worker can claim anything.
    With `may_wait` there is no limit either: it is called before each wait, and the error is raised once it returns False.
    """
    if connections[DEFAULT_DB_ALIAS].in_atomic_block:
        # The caller's transaction is lost with the connection: only the caller can retry.
        return work()
    deadline = math.inf if may_wait else time.monotonic() + settings.LEASE_SECONDS
    pause = FIRST_PAUSE_SECONDS
    try:
        return work()
    except Error as error:
        _give_up_or_wait(error, deadline, pause, may_wait)
    while True:
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        try:
            earlier = committed()
            return work() if earlier is None else earlier
        except Error as error:
            _give_up_or_wait(error, deadline, pause, may_wait)


def _give_up_or_wait(
    error: Error, deadline: float, pause: float, may_wait: Callable[[], bool] | None
) -> None:
    """Close this thread's connection and wait. Raises the error after the deadline, or if it may not wait."""
    is_full = is_database_full(error)
    if not (is_full or is_connection_lost(error)):
        raise error
    connections[DEFAULT_DB_ALIAS].close()
    if is_full and (full := cannot_store(error)):
        storage_guard.note(full)
    elif time.monotonic() + pause > deadline:
        raise error
    if may_wait and not may_wait():
        raise error
    outage.note(error)
    # Many lanes wait for the same server: jitter spreads their retries.
    time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 (no secret)
