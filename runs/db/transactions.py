"""Short write transactions from many threads, the database's clock with its leases, and requests of jobs.

A lease is the right to work on a row until a moment of this clock, so differences between workers' clocks don't
matter. Later writes name the lease's token. A job is stored in the transaction of what asks for it.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import FloatField, Func

from runs.models import Job, Launch


class DatabaseNow(Func):
    """The database's time as seconds since 1970, as an expression."""

    template = "EXTRACT(EPOCH FROM clock_timestamp())"
    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="((julianday('now') - 2440587.5) * 86400.0)", **context
        )


def database_now() -> float:
    """Return the database's time as seconds since 1970."""
    expression = {
        "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
        "postgresql": "EXTRACT(EPOCH FROM clock_timestamp())::float8",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {expression}")
        return float(cursor.fetchone()[0])


def new_token() -> str:
    """Return a fencing token."""
    return uuid.uuid4().hex


def lease_end() -> object:
    """Return the expression for a lease that begins now."""
    return DatabaseNow() + float(settings.LEASE_SECONDS)


def request_job(
    kind: Job.Kind,
    subject: int,
    *,
    labels: Sequence[str] = (),
    launch: Launch | None = None,
    due: object | None = None,
    expires: datetime | None = None,
) -> Job:
    """Store the job of a subject, or make the one that it has due then, and return it. Requires a transaction.

    A worker that is at it notices that it became due again, and doesn't end it.
    """
    due = DatabaseNow() if due is None else due
    values = {"labels": list(labels), "launch": launch, "due": due, "expires": expires}
    stored = Job.objects.filter(kind=kind, subject=subject)
    if not stored.update(due=due):
        _, is_new = Job.objects.get_or_create(kind=kind, subject=subject, defaults=values)
        if not is_new:
            stored.update(due=due)
    return stored.get()


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
