"""Read a list's filters from its query string, and explain a list that they leave empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, Self

from django.http import QueryDict

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import format_count
from evalhub.web.template_filters import line


def no_match(noun: str, filters: Iterable[tuple[str, str, int | None]], *, older: bool = False) -> str:
    """Return a sentence on the filters that match nothing, given as name, value and rows without each."""
    active = list(filters)
    named = ", ".join(f"{name} “{line(value)}”" for name, value, _ in active)
    without = [f"{format_count(left, noun)} without {name}" for name, _, left in active if left]
    sentence = f"No {'older ' if older else ''}{noun} matches {named}."
    return f"{sentence} Found {', '.join(without)}." if without else sentence


MOST_VALUES = 50
"""Maximum values of one filter."""


@dataclass(frozen=True)
class AddressFilters:
    """A list's filters by query parameter; an empty text or tuple isn't a filter.

    A field that is a tuple takes several values; any of them may match.
    """

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        """Read the filters of a query string; ignore everything else."""
        return cls(**{each.name: _value(each, query) for each in fields(cls)})

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Return name and value of the active filters, in the form's order; each of several values by itself."""
        active: list[tuple[str, str]] = []
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            active += [
                (attribute.name, one) for one in ((value,) if isinstance(value, str) else value) if one
            ]
        return active

    def without(self, name: str, value: str | None = None) -> Self:
        """Return the filters without one of them, or without one of its values."""
        current = getattr(self, name)
        if isinstance(current, str):
            return replace(self, **{name: ""})
        left = () if value is None else tuple(one for one in current if one != value)
        return replace(self, **{name: left})


def _value(field: Field[Any], query: QueryDict) -> str | tuple[str, ...]:
    if field.default is MISSING or not isinstance(field.default, tuple):
        return query.get(field.name, "").strip()[:LONGEST_NAME]
    texts = (value.strip()[:LONGEST_NAME] for value in query.getlist(field.name))
    return tuple(dict.fromkeys(filter(None, texts)))[:MOST_VALUES]
