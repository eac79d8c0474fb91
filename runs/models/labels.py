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
        (asked, of_asked), (own, of_own) = map(compiler.compile, self.get_source_expressions())
        return within_sql("sqlite", asked, own), [*of_asked, *of_own]

    def as_postgresql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, list[Any]]:
        """Return the condition by the operator of jsonb."""
        (asked, of_asked), (own, of_own) = map(compiler.compile, self.get_source_expressions())
        return within_sql("postgresql", asked, own), [*of_asked, *of_own]


def within_sql(vendor: str, asked: str, own: str) -> str:
    """Return the SQL of `LabelsWithin` for two expressions."""
    if vendor == "postgresql":
        return f"({asked} <@ {own})"
    return (
        f"NOT EXISTS (SELECT 1 FROM json_each({asked}) AS asked "  # noqa: S608 (expressions, not values)
        f"WHERE asked.value NOT IN (SELECT own.value FROM json_each({own}) AS own))"
    )
