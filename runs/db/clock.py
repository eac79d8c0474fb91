"""The database's clock, and leases by it, so that differences between workers' clocks don't matter.

A lease is the right to work on a row until a moment of this clock, under a token that later writes name.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import FloatField, Func


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
