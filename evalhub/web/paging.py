"""Pages by key: a page costs the same at the end of a million rows as at the start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet
from django.http import QueryDict

Row = TypeVar("Row")
SIZE = 50
LARGEST_KEY = 2**63 - 1


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Some rows, newest first, and the key that the next page starts below."""

    rows: Sequence[Row]
    before: int | None
    first: bool

    def older(self, query: QueryDict) -> str:
        """Return the query string of the next page with the same filters."""
        changed = query.copy()
        changed["before"] = str(self.before)
        return changed.urlencode()


def key_of(text: str) -> int | None:
    """Return the key that an address carries, or None where it carries none that could exist."""
    return (
        int(text)
        if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= LARGEST_KEY
        else None
    )


def page_below(
    rows: QuerySet[Any, Row],
    before: str,
    *,
    size: int = SIZE,
    key_in: Callable[[Row], int] = attrgetter("pk"),
) -> Page[Row]:
    """Return the newest rows below a key, in one query; any text that isn't a key gives the first page.

    `key_in` finds the key in rows that aren't objects.
    """
    key = key_of(before)
    if key is not None:
        rows = rows.filter(pk__lt=key)
    newest = list(rows.order_by("-pk")[: size + 1])
    shown = newest[:size]
    return Page(shown, key_in(shown[-1]) if len(newest) > size else None, key is None)
