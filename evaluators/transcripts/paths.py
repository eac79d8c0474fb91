"""Paths into JSON, as a target's settings name fields: `data.reply`, `messages[0].content`."""

from __future__ import annotations

import re
from typing import Any, Final

from evaluators.model import Json

MISSING: Final[Any] = object()
"""No value at a path; null is a value."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,4})\]")
_WHOLE = re.compile(r"[^.\[\]]+(?:\[\d{1,4}\])*(?:\.[^.\[\]]+(?:\[\d{1,4}\])*)*")


def parse_path(path: str) -> tuple[str | int, ...]:
    """Return the keys and indexes of a path. Raises `ValueError` with a sentence."""
    if not _WHOLE.fullmatch(path):
        raise ValueError(f"'{path}' isn't a path; write keys and indexes such as messages[0].content")
    return tuple(int(index) if index else key for key, index in _STEP.findall(path))


def get_at_path(value: Json, path: str) -> Json:
    """Return the value at a path, else `MISSING`."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for step in parse_path(path):
        children = (
            value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
        )
        if step not in children:
            return MISSING
        value = children[step]
    return value


def place_item(value: Json, path: str, item: Json) -> Json:
    """Return a value with an item at a path, made where there was none; what it was made from stays as it is."""
    return _place(value, parse_path(path), item)


def _place(value: Json, way: tuple[str | int, ...], item: Json) -> Json:
    if not way:
        return item
    step, rest = way[0], way[1:]
    if isinstance(step, str):
        into = dict(value) if isinstance(value, dict) else {}
        return {**into, step: _place(into.get(step), rest, item)}
    items = list(value) if isinstance(value, list) else []
    items += [None] * (step + 1 - len(items))
    return [*items[:step], _place(items[step], rest, item), *items[step + 1 :]]
