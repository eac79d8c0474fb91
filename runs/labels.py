"""Labels: words that say what a worker has, and that a target needs from its worker; compared in the database, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import BooleanField, F, Func, JSONField, Value

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?")
MOST_LABELS = 16
RULE = "Write lower-case letters, digits, hyphens and underscores, 32 at most, such as gpu or macos-15."


def is_label(word: str) -> bool:
    """Return whether a word can be a label."""
    return LABEL.fullmatch(word) is not None


def normalize_labels(labels: Iterable[str]) -> list[str]:
    """Return each label once, sorted, as they are stored."""
    return sorted(set(labels))


def celery_queue(label: str) -> str:
    """Return the name of the Celery queue that every worker with the label consumes."""
    return f"evalhub.label.{label}"


def format_labels(labels: Sequence[str]) -> str:
    """Return the labels as part of a sentence, such as 'the labels gpu, macos'."""
    return f"the label{'s' if len(labels) > 1 else ''} {', '.join(labels)}"


def waiting_message(labels: Sequence[str]) -> str:
    """Return the sentence for work that no running worker may do."""
    return f"Waits for a worker with {format_labels(labels)}. None is running."


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
