"""Chips: links that narrow what a page lists."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalhub.web.states import look_of_state, sign_of_state


@dataclass(frozen=True)
class Chip:
    """A way to narrow: its words, how many things it leaves, where it leads, and whether it is in force."""

    label: str
    n: int | None
    """None if not counted."""
    query: str
    """Of the address."""
    is_on: bool
    group: str = ""
    """Words before the first of its kind."""
    look: str = ""
    """The class of a badge that has its glyph and its colour, where it has any."""


@dataclass(frozen=True)
class Facet:
    """A filter of a table on its own page, with its number of rows."""

    name: str
    label: str
    n: int
    sign: str = ""
    look: str = ""


@dataclass(frozen=True)
class Facets:
    """The facets above a table, and how many rows it has without them."""

    all: int
    chips: tuple[Facet, ...]


Kinds = Mapping[str, tuple[str, str, Callable[[Any], bool]]]
"""Kinds of rows by the name of their facet: a label, the state whose sign and colour it has, and which rows are of it."""


def count_kinds(rows: Collection[Any], kinds: Kinds) -> list[Facet]:
    """Return the facets with their numbers of rows."""
    counted = []
    for name, (label, state, test) in kinds.items():
        sign, colour = sign_of_state(state)
        look = colour or look_of_state(state)[0]
        counted.append(Facet(name, label, sum(map(test, rows)), sign, look))
    return counted


def rows_of_kind(rows: Sequence[Any], show: str, kinds: Kinds) -> list[Any]:
    """Return a facet's rows; all for an unknown facet."""
    return [row for row in rows if kinds[show][2](row)] if show in kinds else list(rows)
