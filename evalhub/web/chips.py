"""Chips: links that narrow what a page lists."""

from __future__ import annotations

from dataclasses import dataclass


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
