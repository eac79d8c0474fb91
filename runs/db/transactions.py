"""Short write transactions from many threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections, transaction

_lock = threading.Lock()


@contextmanager
def one_writer() -> Iterator[None]:
    """Let the threads of this process write one after another if the database has a single writer.

    SQLite makes waiting threads sleep for milliseconds; this lock wakes them at once.
    """
    database = connections[DEFAULT_DB_ALIAS]
    if database.vendor == "sqlite" and not database.in_atomic_block:
        with _lock:
            yield
    else:
        yield


@contextmanager
def write_transaction() -> Iterator[None]:
    """Open a transaction for a few writes; never hold it across an agent's call."""
    with one_writer(), transaction.atomic():
        yield
