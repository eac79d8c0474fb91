"""Store equal contents once: fixtures, rubrics, guidance versions and scenario versions."""

from __future__ import annotations

import base64
import io
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max

from evalhub.lib.storable_text import storable
from evalhub.teams.models import Project
from evaluators.grading.judges.rubric import RubricCriteria as RubricCriteria
from scenarios.formats.agent_skills.skill_contents import remove_left_out
from scenarios.formats.parsed import Fixture as FixtureFiles
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import is_skill_file, skill_files, split
from scenarios.hashing import (
    blob_hash,
    files_hash,
    gates_hash,
    guidance_hash,
    judge_hash,
    plain,
    rubric_hash,
    scenario_hash,
    task_hash,
)
from scenarios.models import Fixture, Guidance, Rubric, Scenario, ScenarioVersion, Suite
from scenarios.spec import ScenarioSpec


def pack(files: FixtureFiles) -> bytes:
    """Return the files as a compressed tar; equal files result in equal bytes."""
    buffer = io.BytesIO()
    # The fastest preset because most fixtures are small; no time stamps, so equal contents are equal bytes.
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=0) as archive:
        for file in sorted(files, key=lambda each: each.path):
            entry = tarfile.TarInfo(file.path)
            entry.size = len(file.content)
            entry.mode = 0o755 if file.executable else 0o644
            archive.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()


def unpack(archive: bytes) -> FixtureFiles:
    """Return the files of a packed fixture."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:xz") as packed:
        return tuple(
            FixtureFile(entry.name, stream.read(), executable=bool(entry.mode & 0o100))
            for entry in packed
            if (stream := packed.extractfile(entry)) is not None
        )


def store_fixture(project: Project, files: FixtureFiles, extra: Sequence[str] = ()) -> Fixture:
    """Return the stored fixture of these files without guidance; `extra` are more guidance patterns."""
    rest, _ = split(files, extra)
    return keep_files(project, rest)


def keep_files(project: Project, files: FixtureFiles) -> Fixture:
    """Return the stored archive of exactly these files."""
    sha256 = files_hash(files)
    fixture = Fixture.objects.filter(project=project, sha256=sha256).only("pk", "sha256").first()
    if fixture is not None:
        return fixture
    listing = [
        {"path": file.path, "size": len(file.content), "executable": file.executable} for file in files
    ]
    return Fixture.objects.create(project=project, sha256=sha256, archive=pack(files), files=listing)


def keep_rubric(project: Project, rubric: RubricCriteria) -> Rubric:
    """Return the stored rubric with this content."""
    stored, _ = Rubric.objects.get_or_create(
        project=project,
        sha256=rubric_hash(rubric),
        defaults={"name": rubric.name, "content": rubric.model_dump(mode="json")},
    )
    return stored


def store_guidance(
    suite: Suite,
    files: FixtureFiles,
    *,
    by: User | None,
    name: str = "",
    name_if_new: str = "",
    laid: tuple[str, str] = ("", ""),
) -> tuple[Guidance, bool]:
    """Return the suite's guidance version with these files, and whether it is new. A new name replaces the old one.

    `laid` is the file name of the document that made it, and the path it took.
    """
    guidance = plan_guidance(suite, files, name=name or name_if_new)
    if guidance.pk is not None:
        if name and guidance.name != name:
            guidance.name = name
            guidance.save(update_fields=["name"])
        return guidance, False
    guidance.laid_file, guidance.laid_path = laid
    guidance.created_by = by
    guidance.save()
    return guidance, True


def plan_guidance(suite: Suite, files: FixtureFiles, *, name: str = "") -> Guidance:
    """Return the suite's guidance version with these files, or without storing it the one that they would be.

    Of skills, it has what an agent gets (`skill_contents`).
    """
    files = remove_left_out(files)
    sha256 = guidance_hash(files)
    guidance = Guidance.objects.filter(suite=suite, sha256=sha256).first()
    if guidance is not None:
        return guidance
    number = (suite.guidance.aggregate(last=Max("number"))["last"] or 0) + 1
    documents = [_document(file) for file in files]
    name = name or (f"skill {number}" if skill_files(files) else "")
    return Guidance(suite=suite, number=number, sha256=sha256, name=name, files=documents)


def _document(file: FixtureFile) -> dict[str, Any]:
    """Return a document as it is stored; a skill's picture or archive in Base64, beside what is shown of it."""
    document: dict[str, Any] = {
        "path": file.path,
        "content": storable(file.content.decode("utf-8", "replace")),
    }
    if file.executable:
        document["executable"] = True
    if is_skill_file(file.path) and document["content"].encode() != file.content:
        document["content"] = (
            f"Binary file, {len(file.content):,} bytes, SHA-256 {blob_hash(file.content)}.\n"
        )
        document["base64"] = base64.b64encode(file.content).decode()
    return document


def guidance_files(guidance: Guidance | None) -> FixtureFiles:
    """Return the documents of a guidance version as files."""
    return restore_documents(guidance.files if guidance else [])


def restore_documents(stored: Sequence[Mapping[str, Any]]) -> FixtureFiles:
    """Return documents as files, from the form in which a guidance version has them."""
    return tuple(
        FixtureFile(
            document["path"],
            base64.b64decode(document["base64"]) if "base64" in document else document["content"].encode(),
            executable=document.get("executable") is True,
        )
        for document in stored
    )


def keep_scenarios(
    suite: Suite,
    specs: Sequence[ScenarioSpec],
    fixtures: Mapping[str, Fixture],
    task_fixtures: Mapping[str, str],
) -> list[ScenarioVersion]:
    """Store new scenario versions and return the versions of all scenarios in order, with few queries.

    `task_fixtures` are the scenarios' `task_fixture_hash` by key.
    """
    known = {scenario.key: scenario for scenario in suite.scenarios.all()}
    fresh = [Scenario(suite=suite, key=spec.key) for spec in specs if spec.key not in known]
    known |= {scenario.key: scenario for scenario in Scenario.objects.bulk_create(fresh, batch_size=500)}
    versions = [
        _version(suite, known[spec.key], spec, fixtures.get(spec.worker_fixture), task_fixtures[spec.key])
        for spec in specs
    ]
    stored = ScenarioVersion.objects.filter(scenario__suite=suite).defer("content")
    by_content = {(version.scenario_id, version.sha256): version for version in stored}
    absent = [each for each in versions if (each.scenario_id, each.sha256) not in by_content]
    created = ScenarioVersion.objects.bulk_create(absent, batch_size=200)
    by_content |= {(version.scenario_id, version.sha256): version for version in created}
    return [by_content[each.scenario_id, each.sha256] for each in versions]


def _version(
    suite: Suite, scenario: Scenario, spec: ScenarioSpec, fixture: Fixture | None, task_fixture: str
) -> ScenarioVersion:
    criteria, fixture_sha = spec.criteria, fixture.sha256 if fixture else ""
    return ScenarioVersion(
        scenario=scenario,
        sha256=scenario_hash(spec, fixture_sha),
        content=plain(spec),
        fixture=fixture,
        rubric=keep_rubric(suite.project, criteria.judge.rubric) if criteria.judge else None,
        task_hash=task_hash(spec, task_fixture),
        command_pattern=criteria.tool.command_pattern if criteria.tool else "",
        gates_hash=gates_hash(criteria),
        judge_hash=judge_hash(criteria.judge),
    )
