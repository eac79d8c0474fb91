"""How agents use the tool under test (help pages, confused flags, sessions), and counters of `/metrics`."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from evaluators.tool_use.mcp_record import McpSurface, decode_surfaces
from runs.models.run import Run
from runs.models.trial import Trial

MCP = "mcp"
"""The `binary` of what MCP servers show to agents; its version is the hash of its text."""


class ToolHelp(models.Model):
    """The help page of a tool's version, or of one of its subcommands; or what MCP servers show (`MCP`)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    binary = models.CharField(max_length=200)
    tool_version = models.CharField(max_length=200, blank=True)
    subcommand = models.CharField(max_length=200, blank=True)
    """Empty for the tool's own page."""
    text = models.TextField(blank=True)
    """Empty if the tool has none."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "binary", "tool_version", "subcommand"], name="one_help_page_each"
            ),
        ]

    def __str__(self) -> str:
        return f"help of {self.binary} {self.subcommand}".strip()


class FlagConfusion(models.Model):
    """A flag or argument that failed calls of a run confused (`evaluators.tool_use.flag_confusion`)."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="flag_confusions")
    subcommand = models.CharField(max_length=200)
    kind = models.CharField(max_length=20)
    typed = models.CharField(max_length=200, blank=True)
    meant = models.CharField(max_length=200, blank=True)
    calls = models.PositiveIntegerField(default=0)
    trials = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.subcommand} {self.typed or self.meant}"


class ImportedSession(models.Model):
    """A session that a person had with an agent, so that the same one is stored once."""

    suite = models.ForeignKey("scenarios.Suite", on_delete=models.CASCADE, related_name="+", db_index=False)
    session_id = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    """The hash of its file: a session that was continued has another."""
    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["suite", "session_id"], name="one_session_an_id")]

    def __str__(self) -> str:
        return self.session_id


def surface_hash(run: Run) -> str:
    """Return the hash of what a run's MCP servers showed; empty for another tool."""
    return str(run.fingerprint.get("tool_surface") or "")


def surfaces_of(project: int, hashes: Sequence[str]) -> list[tuple[McpSurface, ...]]:
    """Return what is stored under each hash; nothing for an unknown or empty one. One query."""
    rows = ToolHelp.objects.filter(
        project=project, binary=MCP, subcommand="", tool_version__in=filter(None, hashes)
    )
    texts = dict(rows.values_list("tool_version", "text"))
    return [decode_surfaces(texts[each]) if each in texts else () for each in hashes]


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
