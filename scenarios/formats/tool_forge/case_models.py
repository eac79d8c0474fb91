"""The models of tool-forge's eval files."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from evaluators.model import Key, Text
from scenarios.formats.validation import Mirror, reads_as


class Envelope(Mirror):
    """A file with metadata and cases; a plain list has only cases."""

    metadata: dict[str, Any] | None = None
    cases: list[Annotated[Any, reads_as("case")]]


class PerturbationFile(Mirror):
    """Rephrased triggers, grouped by expected routing."""

    metadata: dict[str, Any] | None = None
    triggerPhrase: str = ""
    expectedTool: Text
    shouldRouteIdentically: Annotated[Any, reads_as("group")] = None
    shouldRouteDifferently: Annotated[Any, reads_as("group")] = None


class Input(Mirror):
    message: Text
    """The agent's prompt."""


class CaseFile(Mirror):
    """One eval case."""

    id: Key
    """The case's key in its suite."""
    description: str = ""
    """Shown on pages."""
    input: Input
    expect: Annotated[dict[str, Any] | None, reads_as("expect")] = None
    """What the answer and its tool calls must fulfil."""
    stubs: dict[str, Any] | None = None
    """Answers of stubbed tools; without it, tools are real."""
    maxTurns: Annotated[int, Field(ge=1, le=1000)] | None = None
    """The most turns of the model, for cases with stubs."""
    difficulty: str = ""
    """A tag of the case."""
    bugRef: str = ""
    """The bug that a regression case covers."""
    createdAt: str = ""
    requiresPreamble: bool = False
    label: str = ""
