"""What keeps a counter of `/metrics` from going down."""

from __future__ import annotations

from django.db import models


class MetricCounter(models.Model):
    """A counter as it was last read: counted from results, which a retry or a removal lowers."""

    sample = models.CharField(max_length=200, unique=True)
    """The metric's name with its labels."""
    counted = models.FloatField(default=0.0)
    """What the results came to at the last reading."""
    lowered = models.FloatField(default=0.0)
    """By how much results were lowered until then, which the counter still has."""

    def __str__(self) -> str:
        return self.sample
