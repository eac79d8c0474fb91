"""How SQLite would run a statement."""

from __future__ import annotations

from django.db import connection


def query_plan(statement: str) -> list[str]:
    """Return the steps of SQLite's plan; PostgreSQL's depends on what the tables hold."""
    with connection.cursor() as cursor:
        return [row[-1] for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}")]
