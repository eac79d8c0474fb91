"""Response schemas of suites and their contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalhub.lib.timestamps import moment
from evalhub.web.rest.errors import ProblemOut
from evalhub.web.rest.schema import Schema
from evaluators.redaction import redact_json
from scenarios.imports import Imported
from scenarios.models import Guidance, ScenarioVersion, Suite, SuiteVersion


class SuiteOut(Schema):
    id: int
    slug: str
    name: str
    format: str
    created: str
    url: str


class VersionOut(Schema):
    id: int
    suite: str
    number: int
    sha256: str
    guidance: int | None
    targets_file: str
    lints: list[ProblemOut]
    created: str
    by: str | None


class ScenarioVersionOut(Schema):
    id: int
    scenario: int
    key: str
    sha256: str
    task_hash: str
    gates_hash: str
    judge_hash: str
    rubric: int | None
    fixture: str | None
    """Hash of the files that its workspace starts from."""
    content: dict[str, Any]
    """What to run and what is asked of it, with secrets redacted."""


class VersionWithScenariosOut(VersionOut):
    scenarios: list[ScenarioVersionOut]


class DocumentOut(Schema):
    path: str
    content: str


class GuidanceOut(Schema):
    id: int
    suite: str
    number: int
    name: str
    sha256: str
    laid_file: str
    """The file whose document made this version; empty for an upload with its suite."""
    laid_path: str
    """The path in the workspace that this document took."""
    created: str
    by: str | None


class GuidanceWithFilesOut(GuidanceOut):
    files: list[DocumentOut]


class ChangesOut(Schema):
    added: list[str]
    changed: list[str]
    retired: list[str]
    unchanged: list[str]


class ImportedOut(Schema):
    suite: SuiteOut
    version: int
    new_version: bool
    guidance: int | None
    new_guidance: bool
    changes: ChangesOut
    lints: list[ProblemOut]


def suite_json(suite: Suite) -> dict[str, Any]:
    """Expects the suite's project to be loaded."""
    return {
        "id": suite.pk,
        "slug": suite.slug,
        "name": suite.name,
        "format": suite.format,
        "created": moment(suite.created),
        "url": suite.get_absolute_url(),
    }


def version_json(version: SuiteVersion) -> dict[str, Any]:
    """Expects suite and created_by to be loaded."""
    return {
        "id": version.pk,
        "suite": version.suite.slug,
        "number": version.number,
        "sha256": version.sha256,
        "guidance": version.guidance_id,
        "targets_file": version.targets_file,
        "lints": version.lints,
        "created": moment(version.created),
        "by": version.created_by.get_username() if version.created_by else None,
    }


def scenario_versions_json(versions: Sequence[ScenarioVersion]) -> list[dict[str, Any]]:
    """Expects each one's scenario and fixture (without its archive) to be loaded."""
    return [
        {
            "id": version.pk,
            "scenario": version.scenario_id,
            "key": version.scenario.key,
            "sha256": version.sha256,
            "task_hash": version.task_hash,
            "gates_hash": version.gates_hash,
            "judge_hash": version.judge_hash,
            "rubric": version.rubric_id,
            "fixture": version.fixture.sha256 if version.fixture else None,
            "content": redact_json(version.content),
        }
        for version in versions
    ]


def guidance_json(guidance: Guidance) -> dict[str, Any]:
    """Expects suite and created_by to be loaded."""
    return {
        "id": guidance.pk,
        "suite": guidance.suite.slug,
        "number": guidance.number,
        "name": guidance.name,
        "sha256": guidance.sha256,
        "laid_file": guidance.laid_file,
        "laid_path": guidance.laid_path,
        "created": moment(guidance.created),
        "by": guidance.created_by.get_username() if guidance.created_by else None,
    }


def imported_json(imported: Imported) -> dict[str, Any]:
    changes = imported.changes
    return {
        "suite": suite_json(imported.suite),
        "version": imported.version.number,
        "new_version": imported.new_version,
        "guidance": imported.guidance.pk if imported.guidance else None,
        "new_guidance": imported.new_guidance,
        "changes": {name: list(getattr(changes, name)) for name in ChangesOut.model_fields},
        "lints": [lint.as_json() for lint in imported.lints],
    }
