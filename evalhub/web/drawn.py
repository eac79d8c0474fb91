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

ROOM = 4_000_000
"""Characters that a process keeps, of drawings and of what they were drawn of; the oldest make room."""
LARGEST = 50_000
"""Characters of the longest drawing that is kept, together with what it was drawn of."""


class Kept:
    """Drawings by what they were drawn of. Threads read without waiting."""

    def __init__(self) -> None:
        self.by_key: dict[Hashable, str] = {}
        self._characters: dict[Hashable, int] = {}
        self._taken = 0
        self._lock = Lock()

    def keep(self, key: Hashable, text: str, characters: int) -> None:
        """Keep a drawing that takes so many characters of the room, unless it is too long."""
        if characters > LARGEST:
            return
        with self._lock:
            self._taken += characters - self._characters.pop(key, 0)
            self._characters[key] = characters
            while self._taken > ROOM:
                oldest = next(iter(self._characters))
                self._taken -= self._characters.pop(oldest)
                del self.by_key[oldest]
            self.by_key[key] = text


_kept = Kept()


def drawn(macro: Macro, *values: Hashable) -> SafeString:
    """Return what the macro draws of these values.

    Raises `TypeError` for values that could change while they stay equal, such as models, or that cannot be keys.
    """
    # The code is the template's own, while each page makes its macros anew.
    key = (macro._func.__code__, values)
    text = _kept.by_key.get(key)
    if text is None:
        drawn_of = sum(map(_characters, values))
        text = macro(*values)
        _kept.keep(key, text, drawn_of + len(text))
    return text  # type: ignore[return-value]  # Jinja's own markup, which templates take as it is


def _characters(value: Any) -> int:
    """Return how much text is in a value that cannot change. Raises `TypeError` for any other."""
    if type(value) is str:
        return len(value)
    if type(value) in (int, float, bool, type(None), datetime) or isinstance(value, Enum):
        return 0
    if isinstance(value, tuple):
        inner: list[Any] = list(value)
    elif isinstance(value, Struct) and value.__struct_config__.frozen:
        inner = [getattr(value, name) for name in value.__struct_fields__]
    elif is_dataclass(value) and vars(type(value))["__dataclass_params__"].frozen:
        inner = [getattr(value, each.name) for each in fields(value) if each.compare]
    else:
        raise TypeError(f"A drawing is kept of plain values, not of {type(value).__qualname__}.")
    return sum(map(_characters, inner))
