"""How many values a JSONPath may find in a document, before it is searched: unions and descendants multiply."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from msgspec import Struct

from evaluators.model import Json


class DocumentSize(Struct, frozen=True):
    """How large a JSON document is."""

    values: int
    depth: int
    width: int
    """The most children of one value."""


def document_size(document: Json) -> DocumentSize:
    """Return a document's size."""
    values, depth, width = 0, 0, 1
    stack = [(document, 1)]
    while stack:
        value, level = stack.pop()
        values, depth = values + 1, max(depth, level)
        children = _children(value)
        width = max(width, len(children))
        stack += [(child, level + 1) for child in children]
    return DocumentSize(values, depth, width)


def _children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def most_repeats(path: Any, size: DocumentSize) -> int:
    """Return how many values a compiled path may find at most, beyond finding each once.

    A step down the tree finds every value once; what can find one again multiplies.
    """
    ways = _ways(path, size)
    # The first root, and the first `..`, reach every value once.
    if _first(path) == "Root":
        ways //= size.values
    if _has(path, "Descendants"):
        ways //= size.depth
    return size.values * (ways - 1)


def _ways(path: Any, size: DocumentSize) -> int:
    """Return in how many ways a path may reach one value."""
    inner = [_ways(each, size) for each in _parts(path)]
    if _kind(path) == "Union":
        return sum(inner)
    ways = {
        "Root": size.values,
        "Descendants": size.depth,
        "Parent": size.width,
        "Fields": len(getattr(path, "fields", ())),
        "Index": len(getattr(path, "indices", ())),
    }
    return max(1, ways.get(_kind(path), 1)) * prod(inner)


def _kind(path: Any) -> str:
    # Compared by name because some classes are private.
    return type(path).__name__.lstrip("_")


def _first(path: Any) -> str:
    while left := getattr(path, "left", None):
        path = left
    return _kind(path)


def _has(path: Any, kind: str) -> bool:
    return _kind(path) == kind or any(_has(each, kind) for each in _parts(path))


def _parts(value: Any) -> Iterator[Any]:
    """Yield the paths and expressions that a path consists of."""
    for attribute in vars(value).values():
        for part in attribute if isinstance(attribute, list | tuple) else (attribute,):
            for element in part if isinstance(part, list | tuple) else (part,):
                if type(element).__module__.startswith("jsonpath_ng"):
                    yield element
