"""Names for contents: equal contents have equal hashes, however their files were written."""

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
_WATCHES_ONLY = {"health_check", "version_command"}


def content_hash(value: Json) -> str:
    """Return the SHA-256 of a JSON value, the same for every order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def files_hash(files: Iterable[FixtureFile], *, modes: bool = True) -> str:
    """Return the hash of a set of files: paths, contents and, with `modes`, what may be executed."""
    found = sorted((file.path, blob_hash(file.content), modes and file.executable) for file in files)
    return content_hash([list(file) for file in found])


def blob_hash(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def guidance_hash(guidance: Iterable[FixtureFile]) -> str:
    """Return the hash of a guidance version, a set of (path, content)."""
    return files_hash(guidance, modes=False)


def fixture_hash(fixture: Sequence[FixtureFile], extra: Sequence[str] = ()) -> str:
    """Return the hash of a fixture without the files that are recognised as guidance."""
    rest, _ = split(tuple(fixture), extra)
    return files_hash(rest)


def plain(value: BaseModel, exclude: set[str] | None = None) -> Json:
    """Return a value as JSON without its defaults, so that a field of a later release changes no hash."""
    return value.model_dump(mode="json", exclude=exclude, exclude_defaults=True)


def task_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of what an agent is given to do; `fixture` is the hash of its workspace.

    The fixture counts by its content, not by its name.
    """
    task = plain(spec, _NO_TASK | {"fixture"})
    tool = spec.criteria.tool
    watched = plain(tool, _WATCHES_ONLY) if tool else None
    return content_hash({"task": task, "tool": watched, "fixture": fixture})


def gates_hash(criteria: Criteria) -> str:
    """Return the hash of everything deterministic that decides whether a trial passes."""
    return content_hash(plain(criteria, _NO_GATES))


def rubric_hash(rubric: Rubric) -> str:
    """Return the hash of a rubric, whatever it is called."""
    return content_hash(plain(rubric, {"name"}))


def judge_hash(judge: JudgeCriteria | None) -> str:
    """Return the hash of how a judge judges, its rubric apart; empty without a judge."""
    return content_hash(plain(judge, {"rubric"})) if judge else ""


def scenario_hash(spec: ScenarioSpec, fixture: str = "") -> str:
    """Return the hash of one scenario version: all of it but the file and line it was read from."""
    content = plain(spec, {"file", "line"})
    return content_hash({"spec": content, "fixture": fixture})


def suite_hash(suite: ParsedSuite, extra: Sequence[str] = ()) -> str:
    """Return the hash of a suite version: its scenarios in order, their fixtures and settings, no guidance."""
    fixtures = {name: fixture_hash(files, extra) for name, files in suite.fixtures.items()}
    scenarios = [scenario_hash(spec, fixtures.get(spec.carried, "")) for spec in suite.scenarios]
    return content_hash({"format": suite.format, "scenarios": scenarios, "settings": dict(suite.settings)})
