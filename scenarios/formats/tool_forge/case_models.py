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


class CaseFile(Mirror):
    """One eval case, with the keys of the contract and of the third format."""

    id: Key
    description: str = ""
    input: Input
    expect: Annotated[dict[str, Any] | None, reads_as("expect")] = None
    stubs: dict[str, Any] | None = None
    maxTurns: Annotated[int, Field(ge=1, le=1000)] | None = None
    difficulty: str = ""
    bugRef: str = ""
    createdAt: str = ""
    requiresPreamble: bool = False
    expectedTool: Text | None = None
    expectedTools: list[Text] | None = None
    expectedArgs: dict[str, Any] | None = None
    checks: list[Any] | None = None
    label: str = ""


class ParamFile(Mirror):
    tool: Text
    paramName: Text
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: Any = None


class ExpectFile(Mirror):
    """`expect` in the contract's shape."""

    toolsCalled: list[Text] | None = None
    toolsAcceptable: list[list[Text]] | None = None
    toolsNotCalled: list[Text] | None = None
    toolParams: list[ParamFile] | None = None
    noToolErrors: bool = False
    responseNonEmpty: bool = False
    responseContains: list[str] | None = None
    responseContainsAny: list[list[str]] | None = None
    responseNotContains: list[str] | None = None
    responseMatches: list[str] | None = None
    maxLatencyMs: Bound | None = None
    maxTokens: Bound | None = None


class CheckFile(Mirror):
    """One entry of `checks` in the third format."""

    type: Literal["tool_called", "arg_equals"]
    tool: Text | None = None
    arg: Text | None = None
    value: Any = None
