"""The texts of trials that the search finds."""

from __future__ import annotations

from django.db import models

from runs.models.trial import Trial


class SearchEntry(models.Model):
    """A finished trial's texts, redacted; a full-text index of the database follows the table by itself.

    On SQLite it is the FTS5 table `runs_search`, kept by triggers; on PostgreSQL a generated column with a GIN index.
    """

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, primary_key=True, related_name="search")
    facets = models.TextField(blank=True)
    """Words such as `xp12` for the project: filters are words of the index, so that they are as fast."""
    commands = models.TextField(blank=True)
    """One command to a line."""
    outputs = models.TextField(blank=True)
    """The first line of each output."""
    judge = models.TextField(blank=True)
    """Reasoning, issues and highlights of its judgings, each on a line."""
    answer = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"search entry of trial {self.trial_id}"
