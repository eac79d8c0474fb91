"""Response schemas of suites and their contents."""

from __future__ import annotations

from typing import Annotated

from ninja import Schema
from pydantic import BeforeValidator, Field

from evalhub.lib.value import Moment
from evalhub.web.rest.errors import ProblemOut
from evalhub.web.rest.schema import Redacted, Username
from scenarios.models import ScenarioVersion, SuiteVersion


class SuiteOut(Schema):
    id: int
    slug: str
    name: str
    format: str
    created: Moment
    url: str = Field(validation_alias="get_absolute_url")


class VersionOut(Schema):
    id: int
    suite: str = Field(validation_alias="suite.slug")
    number: int
    sha256: str
    guidance: int | None = Field(validation_alias="guidance_id")
    targets_file: str
    lints: list[ProblemOut]
    created: Moment
    by: Username | None = Field(validation_alias="created_by")


class ScenarioVersionOut(Schema):
    id: int
    scenario: int = Field(validation_alias="scenario_id")
    key: str = Field(validation_alias="scenario.key")
    sha256: str
    task_hash: str
    gates_hash: str
    judge_hash: str
    rubric: int | None = Field(validation_alias="rubric_id")
    fixture: Annotated[str | None, BeforeValidator(lambda fixture: fixture and fixture.sha256)]
    """Hash of the files that its workspace starts from."""
    content: Redacted
    """What to run and what is asked of it, with secrets redacted."""


class VersionWithScenariosOut(VersionOut):
    scenarios: list[ScenarioVersionOut]

    @staticmethod
    def resolve_scenarios(version: SuiteVersion) -> list[ScenarioVersion]:
        entries = version.entries.select_related("scenario_version__scenario", "scenario_version__fixture")
        return [entry.scenario_version for entry in entries.defer("scenario_version__fixture__archive")]


class DocumentOut(Schema):
    path: str
    content: str


class GuidanceOut(Schema):
    id: int
    suite: str = Field(validation_alias="suite.slug")
    number: int
    name: str
    sha256: str
    laid_file: str
    """The file whose document made this version; empty for an upload with its suite."""
    laid_path: str
    """The path in the workspace that this document took."""
    created: Moment
    by: Username | None = Field(validation_alias="created_by")


class GuidanceWithFilesOut(GuidanceOut):
    files: list[DocumentOut]


class ChangesOut(Schema):
    added: list[str]
    changed: list[str]
    retired: list[str]
    unchanged: list[str]


class ImportedOut(Schema):
    suite: SuiteOut
    version: int = Field(validation_alias="version.number")
    new_version: bool
    guidance: Annotated[int | None, BeforeValidator(lambda guidance: guidance and guidance.pk)]
    new_guidance: bool
    changes: ChangesOut
    lints: list[ProblemOut]
