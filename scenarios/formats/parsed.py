"""What every format gives: suites of scenarios with their fixtures, and nothing of the format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluators.model import Json
from scenarios.formats.problems import Problem
from scenarios.spec import ScenarioSpec


@dataclass(frozen=True)
class FixtureFile:
    """One regular file of a fixture; `path` is relative to the workspace, with forward slashes."""

    path: str
    content: bytes
    executable: bool = False


Fixture = tuple[FixtureFile, ...]
"""The files a workspace starts from, sorted by path."""


@dataclass(frozen=True)
class ParsedSuite:
    """One suite as its files have it."""

    name: str
    format: str
    scenarios: tuple[ScenarioSpec, ...]
    fixtures: Mapping[str, Fixture] = field(default_factory=dict)
    """By the name that `ScenarioSpec.fixture` uses; guidance files are still in it."""
    lints: tuple[Problem, ...] = ()
    targets_text: str = ""
    """A targets file found in the bundle, kept as it is for `runs.targets.definitions`."""
    targets_file: str = ""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Suite-wide settings, such as the profiles of llm-tool-test-config.toml."""
