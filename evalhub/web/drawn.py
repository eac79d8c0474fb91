"""What macros draw of values, kept for the next page: a table's rows are the same each time, and drawing them is most of it.

    {% for row in rows %}{{ drawn(run_row, row) }}{% endfor %}

A macro that is drawn sees nothing but its arguments, no clock either, and its arguments are plain values: so what it
drew of equal ones is what it would draw again, and nothing has to be told that something changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from threading import Lock
from typing import Any

from django.utils.safestring import SafeString
from jinja2.runtime import Macro
from msgspec import Struct

MOST = 1_000
"""Drawings that a process keeps; of a row of the longest list they take three megabytes."""
LARGEST = 10_000
"""Characters of the longest drawing that is kept."""

_kept: dict[Hashable, str] = {}
_making_room = Lock()


def drawn(macro: Macro, *values: Hashable) -> SafeString:
    """Return what the macro draws of these values.

    Raises `TypeError` for values that could change while they stay equal, such as models, or that cannot be keys.
    """
    # The code is the template's own, while each page makes its macros anew.
    key = (macro._func.__code__, values)
    known = _kept.get(key)
    if known is None:
        known = _drawn(macro, values, key)
    return known  # type: ignore[return-value]  # Jinja's own markup, which templates take as it is


def _drawn(macro: Macro, values: tuple[Any, ...], key: Hashable) -> str:
    for value in values:
        _check(value)
    text: str = macro(*values)
    if len(text) <= LARGEST:
        with _making_room:
            if len(_kept) >= MOST:
                del _kept[next(iter(_kept))]
            _kept[key] = text
    return text


def _check(value: Any) -> None:
    if type(value) in (str, int, float, bool, type(None), datetime) or isinstance(value, Enum):
        return
    if isinstance(value, tuple):
        inner: list[Any] = list(value)
    elif isinstance(value, Struct) and value.__struct_config__.frozen:
        inner = [getattr(value, name) for name in value.__struct_fields__]
    elif is_dataclass(value) and vars(type(value))["__dataclass_params__"].frozen:
        inner = [getattr(value, each.name) for each in fields(value) if each.compare]
    else:
        raise TypeError(f"A drawing is kept of plain values, not of {type(value).__qualname__}.")
    for each in inner:
        _check(each)
