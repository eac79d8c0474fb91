"""Store equal contents once: fixtures, rubrics, guidance and scenario versions, by hashes of their contents.

Equal contents have equal hashes, however their files are written.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max
from pydantic import BaseModel

from evalhub.lib.storable_text import make_storable
from evalhub.teams.models import Project
from evaluators.grading.evaluate import Criteria
from evaluators.grading.judges.rubric import JudgeCriteria, RubricCriteria
from evaluators.model import Json
from evaluators.tool_use.tool import Tool
from scenarios.formats.agent_skills.skill_folders import remove_left_out
from scenarios.formats.parsed import Fixture as FixtureFiles
from scenarios.formats.parsed import FixtureFile, ParsedSuite
from scenarios.guidance import is_skill_file, named_guidelines, skill_files, split, split_tool
from scenarios.models import Fixture, Guidance, Rubric, Scenario, ScenarioVersion, Suite
from scenarios.spec import ScenarioSpec

_NO_TASK = {
    *("key", "description", "tags", "tier", "cost", "matrix", "file", "line", "criteria", "record_tool"),
    *("difficulty", "bug_ref", "metadata", "conversation", "target"),
}
_NO_GATES = {"tool", "scripts", "judge", "composite"}
_NO_TASK_OF_TOOL = {"health_check", "version_command", "command_pattern", "files", "mcp"}


def content_hash(value: Json) -> str:
    """Return the SHA-256 of a JSON value, independent of key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def joint_hash(hashes: Iterable[str]) -> str:
    """Return the only hash, else a hash over all of them; empty without any."""
    distinct = sorted({each for each in hashes if each})
    return distinct[0] if len(distinct) == 1 else (content_hash(distinct) if distinct else "")


def files_hash(files: Iterable[FixtureFile], *, modes: bool = True) -> str:
    """Return the hash of files: paths, contents and, with `modes`, executable flags."""
    entries = sorted((file.path, blob_hash(file.content), modes and file.executable) for file in files)
    return content_hash([list(file) for file in entries])


def blob_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def solution_hash(script: str | None) -> str:
    """Return the hash of a reference solution, empty without one."""
    return "" if script is None else blob_hash(script.encode("utf-8", "replace"))


def guidance_hash(guidance: Iterable[FixtureFile]) -> str:
    """Return the hash of a guidance version: paths and contents."""
    return files_hash(guidance, modes=False)


def fixture_hash(fixture: Sequence[FixtureFile], extra: Sequence[str] = ()) -> str:
    """Return the hash of a fixture without its guidance files."""
    rest, _ = split(tuple(fixture), extra)
    return files_hash(rest)


def task_fixture_hash(fixture: Sequence[FixtureFile], tool: Tool | None, extra: Sequence[str] = ()) -> str:
    """Return the hash of a fixture without its guidance and without the tool, which have versions of their own."""
    rest, _ = split(tuple(fixture), extra)
    rest, _ = split_tool(rest, tool)
    return files_hash(rest)


def dump_plain(value: BaseModel, exclude: set[str] | None = None) -> Json:
    """Return a value as JSON without defaults, so new fields do not change hashes."""
    return value.model_dump(mode="json", exclude=exclude, exclude_defaults=True)


def task_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of the task; `fixture` is the hash of the workspace without the tool (`task_fixture_hash`).

    The fixture counts by content, not by name. The command pattern only changes which commands are measured.
    """
    task = dump_plain(spec, _NO_TASK | {"fixture"})
    tool = spec.criteria.tool
    checked_tool = dump_plain(tool, _NO_TASK_OF_TOOL) if tool else None
    return content_hash({"task": task, "tool": checked_tool, "fixture": fixture})


def gates_hash(criteria: Criteria) -> str:
    """Return the hash of all deterministic checks."""
    return content_hash(dump_plain(criteria, _NO_GATES))


def rubric_hash(rubric: RubricCriteria) -> str:
    """Return the hash of a rubric, without its name."""
    return content_hash(dump_plain(rubric, {"name"}))


def judge_hash(judge: JudgeCriteria | None) -> str:
    """Return the hash of a judge without its rubric, empty without a judge."""
    return content_hash(dump_plain(judge, {"rubric"})) if judge else ""


def scenario_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of a scenario version, without file and line."""
    content = dump_plain(spec, {"file", "line"})
    return content_hash({"spec": content, "fixture": fixture})


def task_fixture_hashes(suite: ParsedSuite) -> dict[str, str]:
    """Return each scenario's `task_fixture_hash` by key; empty without a fixture."""
    named, fixture_hashes = named_guidelines(suite), dict[tuple[str, str], str]()
    hashes: dict[str, str] = {}
    for spec in suite.scenarios:
        name, tool = spec.worker_fixture, spec.criteria.tool
        if name not in suite.fixtures:
            hashes[spec.key] = ""
            continue
        key = name, tool.model_dump_json() if tool else ""
        if key not in fixture_hashes:
            fixture_hashes[key] = task_fixture_hash(suite.fixtures[name], tool, named)
        hashes[spec.key] = fixture_hashes[key]
    return hashes


def suite_hash(suite: ParsedSuite, extra: Sequence[str] = ()) -> str:
    """Return the hash of a suite version: scenarios in order, fixtures and settings, without guidance."""
    fixtures = {name: fixture_hash(files, extra) for name, files in suite.fixtures.items()}
    scenarios = [scenario_hash(spec, fixtures.get(spec.worker_fixture, "")) for spec in suite.scenarios]
    return content_hash({"format": suite.format, "scenarios": scenarios, "settings": dict(suite.settings)})


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
        "content": make_storable(file.content.decode("utf-8", "replace")),
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
        content=dump_plain(spec),
        fixture=fixture,
        rubric=keep_rubric(suite.project, criteria.judge.rubric) if criteria.judge else None,
        task_hash=task_hash(spec, task_fixture),
        command_pattern=criteria.tool.command_pattern if criteria.tool else "",
        gates_hash=gates_hash(criteria),
        judge_hash=judge_hash(criteria.judge),
    )
