"""Read what a project can run: latest suites, guidance and targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, QuerySet, Subquery

from evalhub.teams.models import Project
from runs.models import Run
from runs.pages.targets.target_list import CheckedTarget, startable_targets
from scenarios.models import SESSIONS, Guidance, Suite, SuiteVersion, Upload

HEAVY = ("targets_text", "config", "lints")
"""Columns of a suite version that planning doesn't need."""


@dataclass(frozen=True)
class RunChoices:
    """The choices of a new run, by name."""

    versions: Mapping[str, SuiteVersion]
    """The latest version with its suite, by the suite's slug."""
    guidance: Sequence[Guidance]
    """Without the documents themselves."""
    defaults: Mapping[int, Guidance | None]
    """Default guidance by the suite's key."""
    targets: Sequence[CheckedTarget]
    """Targets that may run."""
    usual: Mapping[str, str]
    """The target of a suite's last run, by slug, if it may still run."""

    @property
    def suites(self) -> list[Suite]:
        return [version.suite for version in self.versions.values()]

    def guidance_of(self, suite: Suite) -> list[Guidance]:
        """Return a suite's guidance versions, newest first."""
        return [each for each in self.guidance if each.suite_id == suite.pk]


def run_choices(project: Project, *, now: datetime) -> RunChoices:
    """Return a project's choices for a new run. Four queries."""
    versions = list(_versions(project.pk))
    guidance = list(_guidance(project.pk))
    by_key = {each.pk: each for each in guidance}
    for version in versions:
        version.suite.project = project
    targets = startable_targets(project, now=now)
    names = {each.target.pk: each.target.name for each in targets}
    # The row type lacks the annotation. No row has the key 0.
    ran_on = {version.suite.slug: getattr(version, "last_target", None) or 0 for version in versions}
    return RunChoices(
        {version.suite.slug: version for version in versions},
        guidance,
        {version.suite_id: by_key.get(getattr(version, "last_guidance", None) or 0) for version in versions},
        targets,
        {slug: names[key] for slug, key in ran_on.items() if key in names},
    )


def _versions(project: int) -> QuerySet[SuiteVersion]:
    last = Upload.objects.filter(suite=OuterRef("suite")).order_by("-pk")
    found = SuiteVersion.objects.filter(suite__project=project, pk=Subquery(last.values("suite_version")[:1]))
    found = found.exclude(suite__format=SESSIONS)
    ran = Run.objects.filter(suite=OuterRef("suite")).order_by("-pk")
    found = found.annotate(
        last_guidance=Subquery(last.values("guidance")[:1]), last_target=Subquery(ran.values("target")[:1])
    )
    return found.select_related("suite").defer(*HEAVY).order_by("suite__name", "suite__pk")


def _guidance(project: int) -> QuerySet[Guidance]:
    found = Guidance.objects.filter(suite__project=project).defer("files")
    return found.order_by("suite__name", "suite", "-number")
