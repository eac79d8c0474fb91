"""Write lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def list_names(names: Sequence[str], most: int) -> str:
    """Return the first names, separated by commas, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
