"""List the fixtures, rubrics and tools of a suite's scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evaluators.grading.criteria import Criteria
from scenarios.models import SuiteEntry, SuiteVersion

Value = TypeVar("Value")


@dataclass(frozen=True)
class Named:
    """A named content and its hash."""

    name: str
    sha256: str


@dataclass(frozen=True)
class SuiteFacts:
    """Unique values in the order of the scenarios."""

    fixtures: tuple[Named, ...] = ()
    """Fixtures of the workspaces."""
    rubrics: tuple[Named, ...] = ()
    """Rubrics of enabled judges."""
    patterns: tuple[str, ...] = ()
    """Patterns that match the tool's calls among commands."""
    tools: tuple[str, ...] = ()
    """Programs that are matched by name, without a pattern."""


def entries_of(version: SuiteVersion) -> list[SuiteEntry]:
    """Return a version's scenarios with the columns that `suite_facts` needs. One query."""
    entries = version.entries.select_related(
        "scenario_version__scenario", "scenario_version__fixture", "scenario_version__rubric"
    )
    # A fixture's archive is large and would be loaded again for every scenario.
    heavy = ("fixture__archive", "fixture__files", "rubric__content")
    return list(entries.defer(*(f"scenario_version__{each}" for each in heavy)))


def suite_facts(entries: Sequence[SuiteEntry], criteria: Sequence[Criteria]) -> SuiteFacts:
    """Return the facts of scenarios; `criteria` has theirs in the same order."""
    pairs = [(each.scenario_version, own) for each, own in zip(entries, criteria, strict=True)]
    tools = [own.tool for _, own in pairs if own.tool]
    return SuiteFacts(
        fixtures=_unique(
            Named(str(version.content["fixture"]), version.fixture.sha256)
            for version, _ in pairs
            if version.fixture and version.content.get("fixture")
        ),
        rubrics=_unique(
            Named(version.rubric.name, version.rubric.sha256)
            for version, own in pairs
            if version.rubric and own.judge and own.judge.enabled
        ),
        patterns=_unique(tool.command_pattern for tool in tools if tool.command_pattern),
        tools=_unique(tool.title for tool in tools if (tool.binary or tool.mcp) and not tool.command_pattern),
    )


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
