"""Compare two versions of a suite, scenario by scenario and line by line, within limits of time and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import yaml

from evaluators.model import Json
from evaluators.statistics.comparability import DECIDING, Standard, find_changed_parts
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.yaml_text import BlockDumper
from scenarios.guidance import named_guidelines
from scenarios.models import Fixture, SuiteEntry, SuiteVersion
from scenarios.spec import ScenarioSpec
from scenarios.storing import (
    dump_plain,
    fixture_hash,
    gates_hash,
    judge_hash,
    rubric_hash,
    scenario_hash,
    task_fixture_hashes,
    task_hash,
    unpack,
)

MOST_LINES = 1_000
"""The most lines of a compared text, because the time can grow with the product of both."""
MOST_SHOWN = 200
"""The most shown lines of a difference."""
AROUND = 3
"""Lines shown before and after each change."""
MOST_PAIRS = 4_000
"""The number of equal line pairs above which common lines do not start a match."""
COMMON = 100
"""The number of pairs that makes a line common."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference with its numbers before and after; None if absent."""

    before: int | None
    after: int | None
    text: str

    @property
    def look(self) -> str:
        """`added`, `removed`, or nothing for an unchanged line."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else ""


Hunk = tuple[DiffLine, ...]


@dataclass(frozen=True)
class TextDifference:
    """Changes with surrounding lines, and the numbers of added and removed lines."""

    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    is_cut: bool
    """Whether lines are missing because of the limit."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without an empty line at the end."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def text_difference(before: Sequence[str], after: Sequence[str]) -> TextDifference | None:
    """Compare two lists of lines; return None if they are too long."""
    if before and after and max(len(before), len(after)) > MOST_LINES:
        return None
    common = _common(before, after)
    groups = SequenceMatcher(common.__contains__, before, after).get_grouped_opcodes(AROUND)
    hunks = [tuple(_lines(group, before, after)) for group in groups]
    looks = [line.look for hunk in hunks for line in hunk]
    return TextDifference(
        tuple(_first(hunks, MOST_SHOWN)),
        looks.count("added"),
        looks.count("removed"),
        len(looks) > MOST_SHOWN,
    )


def _common(before: Sequence[str], after: Sequence[str]) -> frozenset[str]:
    """Return lines so frequent in both texts that pairing them would take seconds."""
    others = Counter(after)
    pairs = {line: count * others[line] for line, count in Counter(before).items()}
    if sum(pairs.values()) <= MOST_PAIRS:
        return frozenset()
    return frozenset(line for line, count in pairs.items() if count > COMMON)


def _lines(
    group: Sequence[tuple[str, int, int, int, int]], before: Sequence[str], after: Sequence[str]
) -> Iterator[DiffLine]:
    for kind, from_before, to_before, from_after, to_after in group:
        if kind == "equal":
            for at in range(to_before - from_before):
                yield DiffLine(from_before + at + 1, from_after + at + 1, before[from_before + at])
        else:
            yield from (DiffLine(at + 1, None, before[at]) for at in range(from_before, to_before))
            yield from (DiffLine(None, at + 1, after[at]) for at in range(from_after, to_after))


def _first(hunks: Sequence[Hunk], lines: int) -> Iterator[Hunk]:
    for hunk in hunks:
        if lines <= 0:
            return
        yield hunk[:lines]
        lines -= len(hunk)


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
        return list(find_changed_parts(self.before.parts, self.after.parts))

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
        contents[row[0]][row[1]] = Content(row[2], make_standard(row[3:end]), row[end] if whole else None)
    return list(contents.values())


def make_standard(columns: Iterable[str | None]) -> Standard:
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
    return Content(scenario_hash(spec, fixture), parts, dump_plain(spec))


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
