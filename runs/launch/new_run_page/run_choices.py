"""Read what a project can run: latest suites, guidance and targets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, QuerySet, Subquery

from evalhub.teams.models import Project
from runs.launch.run_history import RunHistory
from runs.models import Run
from runs.targets.providers.registry import JUDGES
from runs.targets.target_list import CheckedTarget, startable_targets
from scenarios.models import SESSIONS, Guidance, Suite, SuiteVersion, Upload

MOST_BASELINES = 30
"""Runs in the list of baselines."""
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
    names: Mapping[int, str]
    """Names of all targets by key."""
    judges: Sequence[str]
    """Names of the targets that can judge."""
    usual: Mapping[str, str]
    """The target of a suite's last run, by slug, if it may still run."""

    @property
    def suites(self) -> list[Suite]:
        return [version.suite for version in self.versions.values()]

    def guidance_of(self, suite: Suite) -> list[Guidance]:
        """Return a suite's guidance versions, newest first."""
        return [each for each in self.guidance if each.suite_id == suite.pk]


def run_choices(project: Project, *, now: datetime, keep: Collection[str] = ()) -> RunChoices:
    """Return a project's choices for a new run. Four queries.

    Judges of other targets are left out, except those that suites ran on and those in `keep`.
    """
    versions = list(_versions(project.pk))
    guidance = list(_guidance(project.pk))
    by_key = {each.pk: each for each in guidance}
    for version in versions:
        version.suite.project = project
    startable = startable_targets(project, now=now)
    names = {each.target.pk: each.target.name for each in startable}
    # The row type lacks the annotation. No row has the key 0.
    ran_on = {version.suite.slug: getattr(version, "last_target", None) or 0 for version in versions}
    ran = {names[key] for key in ran_on.values() if key in names}
    targets = _without_judges(startable, ran.union(keep))
    return RunChoices(
        {version.suite.slug: version for version in versions},
        guidance,
        {version.suite_id: by_key.get(getattr(version, "last_guidance", None) or 0) for version in versions},
        targets,
        names,
        [each.target.name for each in startable if each.target.provider in JUDGES],
        {slug: names[key] for slug, key in ran_on.items() if key in names},
    )


def _without_judges(targets: list[CheckedTarget], keep: Collection[str]) -> list[CheckedTarget]:
    """Return the targets without those that another one names as its judge."""
    judges = {each.judge for each in targets if each.judge != each.target.name} - {*keep}
    return [each for each in targets if each.target.name not in judges]


def baselines_of(past: RunHistory, offer: RunChoices) -> list[tuple[str, str]]:
    """Return the last runs of a suite as choices for its baseline."""
    return [
        (
            str(run.pk),
            f"Run {run.pk}: {offer.names.get(run.target_id, 'another target')}, {run.passed} of"
            f" {run.passed + run.failed} passed{run.branch and f', {run.branch}'}",
        )
        for run in past.finished[:MOST_BASELINES]
    ]


def _versions(project: int) -> QuerySet[SuiteVersion]:
    last = Upload.objects.filter(suite=OuterRef("suite")).order_by("-pk")
    versions = SuiteVersion.objects.filter(
        suite__project=project, pk=Subquery(last.values("suite_version")[:1])
    )
    versions = versions.exclude(suite__format=SESSIONS)
    ran = Run.objects.filter(suite=OuterRef("suite")).order_by("-pk")
    versions = versions.annotate(
        last_guidance=Subquery(last.values("guidance")[:1]), last_target=Subquery(ran.values("target")[:1])
    )
    return versions.select_related("suite").defer(*HEAVY).order_by("suite__name", "suite__pk")


def _guidance(project: int) -> QuerySet[Guidance]:
    guidance = Guidance.objects.filter(suite__project=project).defer("files")
    return guidance.order_by("suite__name", "suite", "-number")
