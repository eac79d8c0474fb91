"""Short write transactions from many threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

_lock = threading.Lock()


@contextmanager
def one_writer() -> Iterator[None]:
    """Let the threads of this process write one after another where the database has one writer.

    SQLite's waiting threads sleep for milliseconds before they look again; here they are woken at once.
    """
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        with _lock:
            yield
    else:
        yield


@contextmanager
def write_transaction() -> Iterator[None]:
    """Open a transaction for a few writes; never hold it across an agent's call."""
    with one_writer(), transaction.atomic():
        yield
