"""What the head of a suite's page says its scenarios have in common: fixtures, rubrics, and how the tool is found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evaluators.criteria import Criteria
from scenarios.models import SuiteEntry, SuiteVersion

Value = TypeVar("Value")


@dataclass(frozen=True)
class Named:
    """A content by its name and hash."""

    name: str
    sha256: str


@dataclass(frozen=True)
class SuiteFacts:
    """Each value once, in the order of the scenarios that have it first."""

    fixtures: tuple[Named, ...] = ()
    """Those that workspaces start from."""
    rubrics: tuple[Named, ...] = ()
    """Those that a judge is asked by."""
    patterns: tuple[str, ...] = ()
    """How calls of the tool are found among commands."""
    tools: tuple[str, ...] = ()
    """Programs that are found by their name, without a pattern."""


def entries_of(version: SuiteVersion) -> list[SuiteEntry]:
    """Return a version's scenarios with what their facts need. One query."""
    found = version.entries.select_related(
        "scenario_version__scenario", "scenario_version__fixture", "scenario_version__rubric"
    )
    # Archives of fixtures are large, and would come again with every scenario.
    heavy = ("fixture__archive", "fixture__files", "rubric__content")
    return list(found.defer(*(f"scenario_version__{each}" for each in heavy)))


def suite_facts(entries: Sequence[SuiteEntry], criteria: Sequence[Criteria]) -> SuiteFacts:
    """Return the facts of scenarios and of what they ask for, which comes in the same order."""
    pairs = [(each.scenario_version, asked) for each, asked in zip(entries, criteria, strict=True)]
    tools = [asked.tool for _, asked in pairs if asked.tool]
    return SuiteFacts(
        fixtures=_once(
            Named(str(made.content["fixture"]), made.fixture.sha256)
            for made, _ in pairs
            if made.fixture and made.content.get("fixture")
        ),
        rubrics=_once(
            Named(made.rubric.name, made.rubric.sha256)
            for made, asked in pairs
            if made.rubric and asked.judge and asked.judge.enabled
        ),
        patterns=_once(tool.command_pattern for tool in tools if tool.command_pattern),
        tools=_once(tool.binary for tool in tools if tool.binary and not tool.command_pattern),
    )


def _once(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
