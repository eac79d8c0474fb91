"""When expired leases were last looked at."""

from __future__ import annotations

from django.db import models


class LeaseCheck(models.Model):
    """The one row that says when leases were checked, in the database's seconds since 1970."""

    checked = models.FloatField()
    resumed = models.FloatField(default=0.0)
    """When a check followed a gap in which nobody could renew or check leases."""

    def __str__(self) -> str:
        return f"checked at {self.checked:.0f}"
