"""Conditions of a list as its address carries them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

from django.http import QueryDict

LONGEST = 200
"""Characters of a condition that are read."""


@dataclass(frozen=True)
class AddressFilters:
    """A list's conditions, each a text by its name in the address; an empty one is no condition."""

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        """Read the filters of an address; anything else in it is left alone."""
        return cls(**{each.name: query.get(each.name, "").strip()[:LONGEST] for each in fields(cls)})

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Name and value of every condition, in the order of the form."""
        return [(each.name, getattr(self, each.name)) for each in fields(self) if getattr(self, each.name)]

    def without(self, name: str) -> Self:
        """Return the filters with one of them dropped."""
        return replace(self, **{name: ""})
