"""The parsed suites, independent of their format."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from evaluators.model import Json
from scenarios.formats.problems import Problem
from scenarios.spec import ScenarioSpec

T = TypeVar("T")


@dataclass(frozen=True)
class FixtureFile:
    """One regular file of a fixture; `path` is relative to the workspace, with forward slashes."""

    path: str
    content: bytes
    executable: bool = False


Fixture = tuple[FixtureFile, ...]
"""The initial files of a workspace, sorted by path."""


@dataclass
class CaseReading:
    """One translated case. Without a `spec`, the problems say why."""

    spec: ScenarioSpec | None = None
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class ParsedSuite:
    """One suite of an upload."""

    name: str
    format: str
    scenarios: tuple[ScenarioSpec, ...]
    fixtures: Mapping[str, Fixture] = field(default_factory=dict)
    """Fixtures by the name in `ScenarioSpec.fixture`, including guidance files."""
    guidance: tuple[str, ...] = ()
    """Patterns of files that are guidance regardless of their name, such as those of a skill."""
    lints: tuple[Problem, ...] = ()
    targets_text: str = ""
    """The bundle's targets file, unchanged, for `runs.targets.definitions`."""
    targets_file: str = ""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Suite-wide settings, such as the profiles of llm-tool-test-config.toml."""
    solutions: Mapping[str, str] = field(default_factory=dict)
    """Reference solutions as shell scripts, by scenario key; not part of the content."""
    left_out: tuple[str, ...] = ()
    """What of the skills' folders no agent gets: folders with the number of their files, and files."""


def find_repeated(entries: Iterable[tuple[Hashable, T]]) -> Iterator[tuple[str, T, T]]:
    """Yield the key and value of each entry whose key another one has before it, and the value of that."""
    first: dict[Hashable, tuple[Hashable, T]] = {}
    for entry in entries:
        earlier = first.setdefault(entry[0], entry)
        if earlier is not entry:
            yield str(entry[0]), entry[1], earlier[1]
