"""Suites, scenarios, fixtures, rubrics and guidance, with their immutable versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils import timezone

from evalhub.teams.models import Project
from evaluators.tool_use.exposure import estimated_tokens

if TYPE_CHECKING:
    from scenarios.spec import ScenarioSpec

SESSIONS = "sessions"
"""The format of suites that hold imported sessions."""


class Suite(models.Model):
    """A set of scenarios that is uploaded and versioned together."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="suites")
    slug = models.SlugField(max_length=120)
    name = models.CharField(max_length=200)
    format = models.CharField(max_length=30)
    release_k = models.PositiveSmallIntegerField(null=True)
    """Trials of each scenario that a release expects to pass all; None without a release rule."""
    release_threshold = models.FloatField(null=True)
    """The least mean chance of that, from 0 to 1."""
    retests = models.BooleanField(default=True, db_default=True)
    """Whether its runs run scenarios again that look worse."""
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "slug"], name="one_suite_a_slug")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return f"/p/{self.project.slug}/suites/{self.slug}/"

    @property
    def has_sessions(self) -> bool:
        """Whether its trials are people's sessions: they have no gates, so nothing passes, fails or compares."""
        return self.format == SESSIONS


class Fixture(models.Model):
    """The initial files of a workspace without guidance, stored once for each content."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="fixtures")
    sha256 = models.CharField(max_length=64)
    archive = models.BinaryField()
    """A compressed tar of the files, in the database so that every worker can read it."""
    files = models.JSONField(default=list)
    """Paths and sizes for pages."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "sha256"], name="one_fixture_a_content")]

    def __str__(self) -> str:
        return self.sha256[:8]


class Rubric(models.Model):
    """Weighted criteria for a judge, stored once for each content."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rubrics")
    sha256 = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    content = models.JSONField()
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "sha256"], name="one_rubric_a_content")]

    def __str__(self) -> str:
        return f"{self.name} {self.sha256[:8]}"


class Guidance(models.Model):
    """A version of a suite's documents for the agent."""

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="guidance")
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    name = models.CharField(max_length=120, blank=True)
    files = models.JSONField(default=list)
    """`{"path", "content"}` for each document, with paths in the workspace; a skill's files may be executable or binary."""
    left_out = models.JSONField(default=list, db_default=[])
    """Documents of an earlier release's version that no agent gets any more, such as a skill's evals."""
    laid_file = models.CharField(max_length=120, blank=True, default="", db_default="")
    """The name of the file whose document made this version; empty for an upload with its suite."""
    laid_path = models.CharField(max_length=1000, blank=True, default="", db_default="")
    """The path in the workspace that this document took."""
    created = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["suite", "sha256"], name="one_guidance_a_content"),
            models.UniqueConstraint(fields=["suite", "number"], name="one_guidance_a_number"),
        ]

    def __str__(self) -> str:
        return self.name or f"guidance {self.number}"

    @property
    def tokens(self) -> int:
        """An estimate from the number of characters."""
        return sum(estimated_tokens(each["content"]) for each in self.files)


class SuiteVersion(models.Model):
    """One immutable content of a suite: an ordered set of scenario versions."""

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    guidance = models.ForeignKey(Guidance, on_delete=models.SET_NULL, null=True, related_name="+")
    """The guidance of its upload; runs default to the suite's last upload, see `Upload`."""
    targets_text = models.TextField(blank=True)
    """The targets file of its last upload, not part of the content."""
    targets_file = models.CharField(max_length=300, blank=True)
    solutions = models.JSONField(default=dict)
    """The reference solutions of its last upload by scenario key, as shell scripts; not part of the content."""
    source = models.ForeignKey(Fixture, on_delete=models.SET_NULL, null=True, related_name="+")
    """All files of its last upload, to edit them; None for versions before they were kept."""
    source_name = models.CharField(max_length=300, blank=True, default="", db_default="")
    """What that upload was called, which may name the suite."""
    config = models.JSONField(default=dict)
    lints = models.JSONField(default=list)
    created = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    scenario_versions: models.ManyToManyField[ScenarioVersion, SuiteEntry] = models.ManyToManyField(
        "ScenarioVersion", through="SuiteEntry", related_name="suite_versions"
    )

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["suite", "sha256"], name="one_version_a_content"),
            models.UniqueConstraint(fields=["suite", "number"], name="one_version_a_number"),
        ]

    def __str__(self) -> str:
        return f"{self.suite.name} v{self.number}"


class Scenario(models.Model):
    """One task with a stable key; a key missing in an upload is retired, never deleted."""

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="scenarios")
    key = models.CharField(max_length=200)
    retired = models.BooleanField(default=False)

    class Meta:
        ordering = ["key"]
        constraints = [models.UniqueConstraint(fields=["suite", "key"], name="one_scenario_a_key")]

    def __str__(self) -> str:
        return self.key


class ScenarioVersion(models.Model):
    """One content of a scenario, referenced by trials."""

    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="versions")
    sha256 = models.CharField(max_length=64)
    content = models.JSONField()
    """`ScenarioSpec` as JSON."""
    fixture = models.ForeignKey(Fixture, on_delete=models.PROTECT, null=True, related_name="+")
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, null=True, related_name="+")
    task_hash = models.CharField(max_length=64)
    command_pattern = models.TextField(blank=True, default="")
    """The pattern of the tool's commands in effect, which decides what the interaction metrics measure."""
    gates_hash = models.CharField(max_length=64)
    judge_hash = models.CharField(max_length=64, blank=True)
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["scenario", "sha256"], name="one_scenario_version_a_content")
        ]

    def __str__(self) -> str:
        return f"{self.scenario.key} {self.sha256[:8]}"

    @property
    def spec(self) -> ScenarioSpec:
        """Return the content as a `ScenarioSpec`."""
        # Imported here because pages that list versions do not need gates.
        from scenarios.spec import ScenarioSpec

        return ScenarioSpec.model_validate(self.content)


class SuiteEntry(models.Model):
    """A scenario version's position in a suite version."""

    suite_version = models.ForeignKey(SuiteVersion, on_delete=models.CASCADE, related_name="entries")
    scenario_version = models.ForeignKey(ScenarioVersion, on_delete=models.CASCADE, related_name="entries")
    position = models.PositiveIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["suite_version", "scenario_version"], name="each_scenario_once"),
        ]

    def __str__(self) -> str:
        return f"{self.suite_version} {self.position}"


class Upload(models.Model):
    """One upload; a suite's last upload determines the default guidance of runs."""

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="uploads")
    suite_version = models.ForeignKey(SuiteVersion, on_delete=models.CASCADE, related_name="uploads")
    guidance = models.ForeignKey(Guidance, on_delete=models.SET_NULL, null=True, related_name="+")
    created = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.suite_version} {self.created:%Y-%m-%d}"
