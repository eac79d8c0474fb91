"""Read a list's filters from its query string."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

from django.http import QueryDict

LONGEST = 200
"""Maximum characters of a filter."""


@dataclass(frozen=True)
class AddressFilters:
    """A list's filters by query parameter; an empty text is no filter."""

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        """Read the filters of a query string; ignore everything else."""
        return cls(**{each.name: query.get(each.name, "").strip()[:LONGEST] for each in fields(cls)})

    @property
    def in_force(self) -> list[tuple[str, str]]:
        """Return name and value of the active filters, in the form's order."""
        return [(each.name, getattr(self, each.name)) for each in fields(self) if getattr(self, each.name)]

    def without(self, name: str) -> Self:
        """Return the filters without one of them."""
        return replace(self, **{name: ""})
