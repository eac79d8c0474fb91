"""Explain an empty filtered list."""

from __future__ import annotations

from collections.abc import Iterable

from evalhub.lib.numbers import counted
from evalhub.web.template_filters import line


def no_match(noun: str, filters: Iterable[tuple[str, str, int | None]], *, older: bool = False) -> str:
    """Return a sentence on the filters that match nothing, given as name, value and rows without each."""
    active = list(filters)
    named = ", ".join(f"{name} “{line(value)}”" for name, value, _ in active)
    without = [f"{counted(left, noun)} without {name}" for name, _, left in active if left]
    sentence = f"No {'older ' if older else ''}{noun} matches {named}."
    return f"{sentence} Found {', '.join(without)}." if without else sentence
