"""Retries short database work on a fresh connection when the server is away."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections

from evalhub.lib.disk_errors import is_database_full
from runs.db.disk import cannot_store, storage_guard
from runs.db.outage import outage

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
