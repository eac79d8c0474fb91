"""What a database's tables are, without their rows."""

from __future__ import annotations

from typing import Any

from django.db import connection

PROPERTIES = ("columns", "primary_key", "unique", "foreign_key", "check", "index")


def tables() -> dict[str, Any]:
    """Return each table's columns (name, type, whether null is allowed) and its constraints and indexes, sorted."""
    with connection.cursor() as cursor:
        return {name: _table(cursor, name) for name in connection.introspection.table_names(cursor)}


def _table(cursor: Any, name: str) -> list[list[str]]:
    columns = connection.introspection.get_table_description(cursor, name)
    constraints = connection.introspection.get_constraints(cursor, name).values()
    return [
        sorted(str((column.name, column.type_code, column.null_ok)) for column in columns),
        sorted(str([constraint[key] for key in PROPERTIES]) for constraint in constraints),
    ]
