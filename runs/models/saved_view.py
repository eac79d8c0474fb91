"""Named filters of the runs page."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.lib.limits import LONGEST_ADDRESS
from evalhub.teams.models import Project


class SavedView(models.Model):
    """The query string of a runs page under a name: one person's, or the team's."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_views")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)
    """None for the team's views."""
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=LONGEST_ADDRESS, blank=True)
    is_default = models.BooleanField(default=False)
    """Shown where the runs page is opened without filters; a person's default precedes the team's."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "owner", "name"], name="one_own_view_a_name"),
            models.UniqueConstraint(
                fields=["project", "name"], name="one_team_view_a_name", condition=models.Q(owner=None)
            ),
        ]

    def __str__(self) -> str:
        return self.name
