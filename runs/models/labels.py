"""Compares labels in the database, so that a claim and its condition are one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import BooleanField, F, Func, JSONField, Value


class LabelsWithin(Func):
    """Whether a worker has every label in a column: true for a column without labels."""

    output_field = BooleanField()

    def __init__(self, column: str | F, labels: Sequence[str]) -> None:
        super().__init__(column, Value(list(labels), JSONField()))

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, list[Any]]:
        """Return the condition over the elements of both lists."""
        (asked, of_asked), (available, of_available) = map(compiler.compile, self.get_source_expressions())
        return within_sql("sqlite", asked, available), [*of_asked, *of_available]

    def as_postgresql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, list[Any]]:
        """Return the condition by the operator of jsonb."""
        (asked, of_asked), (available, of_available) = map(compiler.compile, self.get_source_expressions())
        return within_sql("postgresql", asked, available), [*of_asked, *of_available]


def within_sql(vendor: str, asked: str, available: str) -> str:
    """Return the SQL of `LabelsWithin` for two expressions."""
    if vendor == "postgresql":
        return f"({asked} <@ {available})"
    return (
        f"NOT EXISTS (SELECT 1 FROM json_each({asked}) AS asked "  # noqa: S608 (expressions, not values)
        f"WHERE asked.value NOT IN (SELECT available.value FROM json_each({available}) AS available))"
    )
