"""Hash contents: equal contents have equal hashes, however their files are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from evaluators.criteria import Criteria
from evaluators.judges.rubric import JudgeCriteria, Rubric
from evaluators.model import Json
from scenarios.formats.parsed import FixtureFile, ParsedSuite
from scenarios.guidance import split
from scenarios.spec import ScenarioSpec

_NO_TASK = {
    *("key", "description", "tags", "tier", "cost", "matrix", "file", "line", "criteria"),
    *("difficulty", "bug_ref", "metadata", "conversation", "target"),
}
_NO_GATES = {"tool", "scripts", "judge", "composite"}
_TOOL_CHECKS = {"health_check", "version_command"}


def content_hash(value: Json) -> str:
    """Return the SHA-256 of a JSON value, independent of key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def files_hash(files: Iterable[FixtureFile], *, modes: bool = True) -> str:
    """Return the hash of files: paths, contents and, with `modes`, executable flags."""
    found = sorted((file.path, blob_hash(file.content), modes and file.executable) for file in files)
    return content_hash([list(file) for file in found])


def blob_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def guidance_hash(guidance: Iterable[FixtureFile]) -> str:
    """Return the hash of a guidance version: paths and contents."""
    return files_hash(guidance, modes=False)


def fixture_hash(fixture: Sequence[FixtureFile], extra: Sequence[str] = ()) -> str:
    """Return the hash of a fixture without its guidance files."""
    rest, _ = split(tuple(fixture), extra)
    return files_hash(rest)


def plain(value: BaseModel, exclude: set[str] | None = None) -> Json:
    """Return a value as JSON without defaults, so new fields do not change hashes."""
    return value.model_dump(mode="json", exclude=exclude, exclude_defaults=True)


def task_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of the task; `fixture` is the hash of the workspace.

    The fixture counts by content, not by name.
    """
    task = plain(spec, _NO_TASK | {"fixture"})
    tool = spec.criteria.tool
    checked_tool = plain(tool, _TOOL_CHECKS) if tool else None
    return content_hash({"task": task, "tool": checked_tool, "fixture": fixture})


def gates_hash(criteria: Criteria) -> str:
    """Return the hash of all deterministic checks."""
    return content_hash(plain(criteria, _NO_GATES))


def rubric_hash(rubric: Rubric) -> str:
    """Return the hash of a rubric, without its name."""
    return content_hash(plain(rubric, {"name"}))


def judge_hash(judge: JudgeCriteria | None) -> str:
    """Return the hash of a judge without its rubric, empty without a judge."""
    return content_hash(plain(judge, {"rubric"})) if judge else ""


def scenario_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of a scenario version, without file and line."""
    content = plain(spec, {"file", "line"})
    return content_hash({"spec": content, "fixture": fixture})


def suite_hash(suite: ParsedSuite, extra: Sequence[str] = ()) -> str:
    """Return the hash of a suite version: scenarios in order, fixtures and settings, without guidance."""
    fixtures = {name: fixture_hash(files, extra) for name, files in suite.fixtures.items()}
    scenarios = [scenario_hash(spec, fixtures.get(spec.worker_fixture, "")) for spec in suite.scenarios]
    return content_hash({"format": suite.format, "scenarios": scenarios, "settings": dict(suite.settings)})
