"""What makes a column's value of what the driver gives: for moments and JSON in a tenth of Django's time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from django.db.models import JSONField


def quick_converter(
    converters: list[Callable[..., Any]], column: Any, connection: Any
) -> Callable[[Any], Any]:
    """Return what makes a column's value of what the driver gives; `converters` are those that Django uses one by one."""
    if len(converters) == 1:
        [convert] = converters
        owner = getattr(convert, "__self__", None)
        if isinstance(owner, JSONField) and owner.decoder is None:
            return partial(_json, partial(_one_by_one, converters, column, connection))
        named = getattr(convert, "__name__", "")
        if named == "convert_datetimefield_value" and owner and owner.connection.timezone is UTC:
            return _moment
    return partial(_one_by_one, converters, column, connection)


def _one_by_one(converters: list[Callable[..., Any]], column: Any, connection: Any, value: Any) -> Any:
    for convert in converters:
        value = convert(value, column, connection)
    return value


def _json(otherwise: Callable[[Any], Any], value: Any) -> Any:
    if type(value) is str:
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            # What Django reads and the standard does not know, such as NaN.
            pass
    return otherwise(value)


def _moment(value: datetime | str | None) -> datetime | None:
    if value is None:
        return None
    # Columns come as moments, expressions over them as text.
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
