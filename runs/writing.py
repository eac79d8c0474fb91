"""Short write transactions from many threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

_one_writer = threading.Lock()


@contextmanager
def write_transaction() -> Iterator[None]:
    """Open a transaction for a few writes; never hold it across an agent's call.

    SQLite has one writer, and threads that meet there sleep for milliseconds before they look
    again. Within a process they wait for each other here instead, which wakes them at once.
    """
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        with _one_writer, transaction.atomic():
            yield
    else:
        with transaction.atomic():
            yield
