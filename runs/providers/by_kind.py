"""Load a kind's class on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import Any


class ByKind(Mapping[str, Any]):
    """Classes of this package by kind, given as `file:class`.

    A run uses one kind or two, and loading all takes a tenth of a command's start.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, kind: str) -> Any:
        return resolve_name(f"{__package__}.{self._places[kind]}")

    def __contains__(self, kind: object) -> bool:
        return kind in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
