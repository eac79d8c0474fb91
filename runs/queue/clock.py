"""The database's clock. Leases are compared by it alone, so that no worker's own clock matters."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.models import FloatField, Func


class DatabaseNow(Func):
    """Seconds since 1970 as the database has them, for use in queries."""

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
