"""The models of tool-forge's eval files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from scenarios.formats.validation import Mirror, reads_as

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Key = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Bound = Annotated[float, Field(ge=0, allow_inf_nan=False)]


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


class ParamFile(Mirror):
    tool: Text
    paramName: Text
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: Any = None


class ExpectFile(Mirror):
    """`expect` in the contract's shape."""

    toolsCalled: list[Text] | None = None
    """Exactly these calls, in this order, as often as listed; an empty list means no call."""
    toolsAcceptable: list[list[Text]] | None = None
    """Sets of tools; the called tools must equal one of them, in any order and number."""
    toolsNotCalled: list[Text] | None = None
    """Tools that must not be called."""
    toolParams: list[ParamFile] | None = None
    """Assertions on arguments of calls."""
    noToolErrors: bool = False
    """Whether no call may fail."""
    responseNonEmpty: bool = False
    """Whether the answer must be more than white space."""
    responseContains: list[str] | None = None
    """Texts that the answer contains, all of them."""
    responseContainsAny: list[list[str]] | None = None
    """Groups of texts; of each the answer contains one."""
    responseNotContains: list[str] | None = None
    """Texts that the answer must not contain."""
    responseMatches: list[str] | None = None
    """Regular expressions that match the answer, all of them."""
    maxLatencyMs: Bound | None = None
    """The longest time from the message to the complete answer, in milliseconds."""
    maxTokens: Bound | None = None
    """The most tokens that the agent may use."""
