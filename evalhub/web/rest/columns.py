"""Schemas of rows: the columns of a model, as answers show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model
from ninja import Schema
from pydantic import BeforeValidator, Field, create_model

from evalhub.lib.value import Moment

Row = TypeVar("Row", bound=Schema)
_TYPES: dict[str, Any] = {
    "AutoField": int,
    "BigAutoField": int,
    "BooleanField": bool,
    "DateTimeField": Moment,
    "FloatField": float,
    "IntegerField": int,
    "JSONField": Any,
    "PositiveIntegerField": int,
}
"""Columns that aren't texts."""


def add_columns(model: type[Model], *names: str, of: str = "") -> Callable[[type[Row]], type[Row]]:
    """Add columns to a schema, which reads them from rows: a user's name, the key of another relation.

    `of` is the attribute that has the row, with its point; empty if it is the row.
    """
    fields: dict[str, Any] = {name: _field(model._meta.get_field(name), of) for name in names}

    def add(schema: type[Row]) -> type[Row]:
        parts: dict[str, Any] = {"__module__": schema.__module__, "__doc__": schema.__doc__, **fields}
        return create_model(schema.__name__, __base__=schema, **parts)

    return add


def _field(column: Any, of: str) -> tuple[Any, Any]:
    if column.related_model is User:
        return Annotated[str | None, BeforeValidator(lambda user: user and str(user))], Field(
            validation_alias=of + column.name
        )
    kind = int if column.is_relation else _TYPES.get(column.get_internal_type(), str)
    return (kind | None if column.null else kind), Field(validation_alias=of + column.attname)
