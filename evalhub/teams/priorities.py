"""Priorities of projects and launches."""

from __future__ import annotations

from django.db import models


class Priority(models.IntegerChoices):
    """Which work gets free lanes first: the higher number."""

    LOW = -1, "low"
    NORMAL = 0, "normal"
    HIGH = 1, "high"


RAISED_BY_OTHERS = "Only an admin of the project can raise a launch above normal. Choose normal or low."
NAMES = tuple(each.label for each in Priority)


def priority_named(name: str) -> Priority:
    """Return the priority with a name of `NAMES`. Raises `KeyError`."""
    return Priority[name.upper()]
