"""Hash contents: equal contents have equal hashes, however their files are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from evaluators.grading.criteria import Criteria
from evaluators.grading.judges.rubric import JudgeCriteria, RubricCriteria
from evaluators.model import Json
from evaluators.tool_use.tool import Tool
from scenarios.formats.parsed import FixtureFile, ParsedSuite
from scenarios.guidance import named_guidelines, split
from scenarios.spec import ScenarioSpec
from scenarios.tool_files import split_tool

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


def plain(value: BaseModel, exclude: set[str] | None = None) -> Json:
    """Return a value as JSON without defaults, so new fields do not change hashes."""
    return value.model_dump(mode="json", exclude=exclude, exclude_defaults=True)


def task_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of the task; `fixture` is the hash of the workspace without the tool (`task_fixture_hash`).

    The fixture counts by content, not by name. The command pattern only changes which commands are measured.
    """
    task = plain(spec, _NO_TASK | {"fixture"})
    tool = spec.criteria.tool
    checked_tool = plain(tool, _NO_TASK_OF_TOOL) if tool else None
    return content_hash({"task": task, "tool": checked_tool, "fixture": fixture})


def gates_hash(criteria: Criteria) -> str:
    """Return the hash of all deterministic checks."""
    return content_hash(plain(criteria, _NO_GATES))


def rubric_hash(rubric: RubricCriteria) -> str:
    """Return the hash of a rubric, without its name."""
    return content_hash(plain(rubric, {"name"}))


def judge_hash(judge: JudgeCriteria | None) -> str:
    """Return the hash of a judge without its rubric, empty without a judge."""
    return content_hash(plain(judge, {"rubric"})) if judge else ""


def scenario_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of a scenario version, without file and line."""
    content = plain(spec, {"file", "line"})
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
