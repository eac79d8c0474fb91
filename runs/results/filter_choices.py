"""The choices of a project's run filters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import QuerySet

from evalhub.teams.models import Project
from runs.models import Run, Target
from scenarios.models import Guidance, Suite

RECENT = 100
"""Recent runs whose models, tool versions, tags and people are offered."""
MOST_GUIDANCE = 100
MOST_TAGS = 30


@dataclass(frozen=True)
class Choices:
    """The choices of a project's run filters."""

    suites: list[tuple[str, str]]
    targets: list[str]
    models: list[str]
    tool_versions: list[str]
    """Newest runs first."""
    guidance: list[tuple[int, str]]
    tags: list[tuple[str, int]]
    """The most frequent first."""
    people: list[str]

    @property
    def tag_names(self) -> list[str]:
        """Return the tags by name."""
        return sorted(tag for tag, _ in self.tags)


def choices(project: Project) -> Choices:
    """Return the choices of a project's run filters. Four queries.

    Models, tool versions and tags come from its recent runs, so the cost stays constant.
    """
    runs = Run.objects.filter(project=project.pk).order_by("-pk")
    recent = list(runs.values_list("model", "tool_version", "tags", "by__username")[:RECENT])
    tags = Counter(tag for _, _, tags, _ in recent for tag in tags)
    return Choices(
        list(Suite.objects.filter(project=project).values_list("slug", "name")),
        list(target_names(project.pk)),
        sorted({model for model, *_ in recent if model}),
        list(dict.fromkeys(version for _, version, *_ in recent if version)),
        [(pk, name or f"guidance {number}") for pk, name, number in _guidance(project.pk)],
        tags.most_common(MOST_TAGS),
        sorted({name for *_, name in recent if name}),
    )


def target_names(project: int) -> QuerySet[Target, str]:
    """Return the names of a project's targets. One query."""
    return Target.objects.filter(project=project).values_list("name", flat=True)


def _guidance(project: int) -> QuerySet[Guidance, tuple[int, str, int]]:
    guidance = Guidance.objects.filter(suite__project=project).order_by("-pk")
    return guidance.values_list("pk", "name", "number")[:MOST_GUIDANCE]
