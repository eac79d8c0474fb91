"""Compare two versions of a suite, scenario by scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from evaluators.model import Json
from evaluators.statistics.comparability import DECIDING, Standard, comparability
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.yaml_text import BlockDumper
from scenarios.guidance import named_guidelines
from scenarios.hashing import (
    fixture_hash,
    gates_hash,
    judge_hash,
    plain,
    rubric_hash,
    scenario_hash,
    task_fixture_hashes,
    task_hash,
)
from scenarios.models import Fixture, SuiteEntry, SuiteVersion
from scenarios.spec import ScenarioSpec
from scenarios.storing import unpack
from scenarios.text_difference import TextDifference, lines_of, text_difference

PARTS = ("task_hash", "gates_hash", "judge_hash", "rubric__sha256", "command_pattern")
"""Columns of a scenario version that make up its `Standard`."""


@dataclass(frozen=True)
class Content:
    """A scenario's content in one version."""

    sha256: str
    parts: Standard
    content: Json = None
    """`ScenarioSpec` as JSON; None if it was not requested."""


@dataclass(frozen=True)
class Changed:
    """A scenario that differs between two versions."""

    key: str
    how: str
    """added, changed or retired."""
    before: Content | None
    after: Content | None

    @property
    def parts(self) -> list[str]:
        """The changed parts: task, gates, judge, rubric; none if only descriptions changed."""
        if self.before is None or self.after is None:
            return []
        return list(comparability(self.before.parts, self.after.parts))

    @property
    def text(self) -> TextDifference | None:
        """The text difference of the two contents; None if they are too long."""
        return text_difference(_text(self.before), _text(self.after))


@dataclass(frozen=True)
class SuiteDifference:
    """The difference between two versions of a suite."""

    scenarios: tuple[Changed, ...]
    """Added, changed and retired scenarios, each sorted by key."""
    common: int
    """The number of scenarios in both versions."""

    def only(self, how: str) -> list[Changed]:
        """Return the added, changed or retired scenarios."""
        return [each for each in self.scenarios if each.how == how]

    @property
    def incomparable(self) -> int:
        """The number of common scenarios with results that are not comparable."""
        return sum(bool(DECIDING & set(each.parts)) for each in self.scenarios)

    @property
    def summary(self) -> str:
        """A short summary of the changes."""
        counts = {how: len(self.only(how)) for how in ("added", "changed", "retired")}
        return ", ".join(f"{n} {how}" for how, n in counts.items() if n) or "nothing changed"


def compare_suites(before: Mapping[str, Content], after: Mapping[str, Content]) -> SuiteDifference:
    """Compare two sets of scenarios by key."""
    common = sorted(before.keys() & after.keys())
    changes = [Changed(key, "added", None, after[key]) for key in sorted(after.keys() - before.keys())]
    changes += [
        Changed(key, "changed", before[key], after[key])
        for key in common
        if before[key].sha256 != after[key].sha256
    ]
    changes += [Changed(key, "retired", before[key], None) for key in sorted(before.keys() - after.keys())]
    return SuiteDifference(tuple(changes), len(common))


def contents_of(*versions: SuiteVersion, whole: bool = True) -> list[dict[str, Content]]:
    """Return each stored version's scenarios by key in one query; without `whole`, contents are not read."""
    columns = ["scenario__key", "sha256", *PARTS, *(["content"] if whole else [])]
    entries = SuiteEntry.objects.filter(suite_version__in=versions).order_by("position")
    rows: Any = entries.values_list("suite_version", *(f"scenario_version__{each}" for each in columns))
    contents: dict[int, dict[str, Content]] = {version.pk: {} for version in versions}
    end = 3 + len(PARTS)
    for row in rows:
        contents[row[0]][row[1]] = Content(row[2], standard(row[3:end]), row[end] if whole else None)
    return list(contents.values())


def standard(columns: Iterable[str | None]) -> Standard:
    """Return the standard of a scenario version from the columns in `PARTS`."""
    return Standard(*(value or "" for value in columns))


def parsed_contents(parsed: ParsedSuite) -> dict[str, Content]:
    """Return the scenarios of a suite that is not stored yet, like `contents_of`."""
    named = named_guidelines(parsed)
    fixtures = {name: fixture_hash(files, named) for name, files in parsed.fixtures.items()}
    tasks = task_fixture_hashes(parsed)
    return {
        spec.key: _content(spec, fixtures.get(spec.worker_fixture, ""), tasks[spec.key])
        for spec in parsed.scenarios
    }


def _content(spec: ScenarioSpec, fixture: str, task_fixture: str) -> Content:
    judge, tool = spec.criteria.judge, spec.criteria.tool
    parts = Standard(
        task_hash(spec, task_fixture),
        gates_hash(spec.criteria),
        judge_hash(judge),
        rubric_hash(judge.rubric) if judge else "",
        tool.command_pattern if tool else "",
    )
    return Content(scenario_hash(spec, fixture), parts, plain(spec))


def _text(content: Content | None) -> list[str]:
    """Return a scenario as YAML lines, without its file and line."""
    spec = content.content if content else None
    if not isinstance(spec, dict):
        return []
    # Fields are dumped one by one in the specification's order, because databases do not keep the order.
    shown = [
        name for name in ScenarioSpec.model_fields if name in spec and name not in {"key", "file", "line"}
    ]
    dumped = [
        yaml.dump({name: spec[name]}, Dumper=BlockDumper, allow_unicode=True, width=10**9) for name in shown
    ]
    return "".join(dumped).splitlines()


def fixture_differences(before: SuiteVersion, after: SuiteVersion) -> list[tuple[str, TextDifference | None]]:
    """Return the differing fixture files by path; None where one isn't a text or too long. Two queries at most."""
    rows = SuiteEntry.objects.filter(
        suite_version__in=(before, after), scenario_version__fixture__isnull=False
    )
    columns = ("suite_version", "scenario_version__content__fixture", "scenario_version__fixture")
    used: dict[int, dict[str, int]] = {before.pk: {}, after.pk: {}}
    for version, name, fixture in rows.values_list(*columns).order_by("position"):
        used[version][name or ""] = fixture
    old, new = used.values()
    if old == new:
        return []
    keys = {*old.values(), *new.values()}
    archives = dict(Fixture.objects.filter(pk__in=keys).values_list("pk", "archive"))
    sides = [_files(each, archives) for each in (old, new)]
    paths = sorted(path for path in sides[0].keys() | sides[1] if sides[0].get(path) != sides[1].get(path))
    return [(path, _difference(sides[0].get(path, b""), sides[1].get(path, b""))) for path in paths]


def _files(fixtures: dict[str, int], archives: Mapping[int, bytes | memoryview]) -> dict[str, bytes]:
    """Return the contents of a version's fixture files, by the fixture's name and the path in it."""
    return {
        f"{name}/{file.path}".lstrip("/"): file.content
        for name, pk in fixtures.items()
        for file in unpack(bytes(archives[pk]))
    }


def _difference(before: bytes, after: bytes) -> TextDifference | None:
    try:
        return text_difference(lines_of(before.decode()), lines_of(after.decode()))
    except UnicodeDecodeError:
        return None
