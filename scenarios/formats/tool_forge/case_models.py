"""The models of tool-forge's eval files, and lints of valid cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from evaluators.grading.assertions.expect import NO_TOOLS, WITHOUT_VALUE, Expect
from evaluators.grading.template_tokens import other_tokens_in, tokens_in
from evaluators.model import Key, Text
from scenarios.formats.parsed import Location, Mirror, PositionedDocument, Problem, reads_as


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


@dataclass(frozen=True)
class CaseContext:
    """The location of a case, and settings shared by its group."""

    document: PositionedDocument
    at: Location
    tier: str
    has_seed: bool
    strict: bool
    implied: Expect | None = None
    """The assertions of a case without `expect`, implied by its group."""


@dataclass(frozen=True)
class Linted:
    """One valid case to lint."""

    case: CaseFile
    expect: Expect
    context: CaseContext

    def lint(self, at: Location, what: str, fix: str, id: str) -> Problem:
        """Return a lint at a location in the case."""
        return self.context.document.problem((*self.context.at, *at), what, fix=fix, id=id, lint=True)


def lints(linted: Linted) -> Iterator[Problem]:
    """Yield the lints of a case."""
    yield from _case_keys(linted)
    yield from _tools(linted)
    yield from _empty_values(linted)
    yield from _tokens(linted)
    yield from _tier(linted)


def _case_keys(linted: Linted) -> Iterator[Problem]:
    case = linted.case
    if case.stubs == {}:
        what = "Stub mode has no stubs, so every call returns an error."
        yield linted.lint(("stubs",), what, "Add a stub or remove the key.", "format/empty-stubs")
    if case.maxTurns is not None and case.stubs is None:
        what = "'maxTurns' has no effect without 'stubs'."
        yield linted.lint(("maxTurns",), what, "Remove it or add 'stubs'.", "format/needless-max-turns")
    if case.requiresPreamble:
        what = "'requiresPreamble' is not in the contract, so it is not checked."
        fix = "Use responseNonEmpty instead."
        yield linted.lint(("requiresPreamble",), what, fix, "format/not-checked")


def _tools(linted: Linted) -> Iterator[Problem]:
    expect = linted.expect
    if expect.tools_called is not None and expect.tools_acceptable is not None:
        what = "toolsCalled and toolsAcceptable are both present, and both must pass."
        yield linted.lint(("expect", "toolsAcceptable"), what, "Keep one of the two.", "format/both-tools")
    for index, names in enumerate(expect.tools_acceptable or ()):
        if NO_TOOLS in names and set(names) != {NO_TOOLS}:
            what = f"'{NO_TOOLS}' means no tools, so a set with it and a tool never matches."
            fix = f'Write ["{NO_TOOLS}"] as a separate set.'
            yield linted.lint(("expect", "toolsAcceptable", index), what, fix, "format/mixed-none")


def _empty_values(linted: Linted) -> Iterator[Problem]:
    for at, items in _lists(linted.expect):
        if not items and at != ("toolsCalled",) and at[0] != "toolsAcceptable":
            what = "The list is empty, so it asserts nothing."
            yield linted.lint(("expect", *at), what, "Add a value or remove it.", "format/empty-assertion")
        for index, item in enumerate(items):
            if item == "":
                what = "Every response contains an empty text, so it is skipped."
                yield linted.lint(("expect", *at, index), what, "Remove it.", "format/empty-text")
    for index, param in enumerate(linted.expect.tool_params or ()):
        if not param.value and param.assertion not in WITHOUT_VALUE:
            what = "The value is empty, so the assertion is skipped."
            at = ("expect", "toolParams", index, "value")
            yield linted.lint(at, what, "Write a value, or assert 'exists'.", "format/empty-text")
    if linted.expect.tools_acceptable == ():
        what = "The list is empty, so nothing is asserted."
        fix = f'Write [["{NO_TOOLS}"]] when no tool may be called.'
        yield linted.lint(("expect", "toolsAcceptable"), what, fix, "format/empty-assertion")


def _lists(expect: Expect) -> Iterator[tuple[Location, Sequence[object]]]:
    """Yield every list with its location in `expect`."""
    flat: dict[str, Sequence[object] | None] = {
        "toolsCalled": expect.tools_called,
        "toolsNotCalled": expect.tools_not_called,
        "toolParams": expect.tool_params,
        "responseContains": expect.response_contains,
        "responseContainsAny": expect.response_contains_any,
        "responseNotContains": expect.response_not_contains,
        "responseMatches": expect.response_matches,
    }
    for key, items in flat.items():
        if items is not None:
            yield (key,), items
    for index, group in enumerate(expect.response_contains_any or ()):
        yield ("responseContainsAny", index), group
    for index, names in enumerate(expect.tools_acceptable or ()):
        yield ("toolsAcceptable", index), names


_RESOLVED = ("responseContains", "responseContainsAny", "responseNotContains")


def _tokens(linted: Linted) -> Iterator[Problem]:
    yield from _lint_unresolved(linted, ("input", "message"), linted.case.input.message)
    for at, items in _lists(linted.expect):
        for index, item in enumerate(items):
            if isinstance(item, str):
                read = _in_values if at[0] in _RESOLVED else _lint_unresolved
                yield from read(linted, ("expect", *at, index), item)
    for index, param in enumerate(linted.expect.tool_params or ()):
        for text in [param.value] if isinstance(param.value, str) else param.value:
            yield from _in_values(linted, ("expect", "toolParams", index, "value"), text)


def _lint_unresolved(linted: Linted, at: Location, text: str) -> Iterator[Problem]:
    for token in tokens_in(text):
        what = f"{token} is not replaced: tokens work only in compared values."
        yield linted.lint(at, what, "Write a literal value.", "format/token-not-replaced")


def _in_values(linted: Linted, at: Location, text: str) -> Iterator[Problem]:
    for token in other_tokens_in(text):
        what = f"{token} is not a valid token and is not replaced."
        fix = "Write {{seed:path}} or {{snapshot:path}}, without blanks."
        yield linted.lint(at, what, fix, "format/unknown-token")
    if not linted.context.has_seed and any(token.startswith("{{seed:") for token in tokens_in(text)):
        what = "The upload has no seed manifest, so the value is skipped unless the run has one."
        fix = "Add evals/seed-manifest.json to the upload."
        yield linted.lint(at, what, fix, "format/no-seed-manifest")
    if linted.context.tier == "regression" and any(
        token.startswith("{{snapshot:") for token in tokens_in(text)
    ):
        what = "A snapshot changes between runs, so a regression case should not use it."
        yield linted.lint(at, what, "Use a seed token or a literal value.", "format/snapshot-in-regression")


def _tier(linted: Linted) -> Iterator[Problem]:
    if linted.context.tier != "golden":
        return
    for key, value in (
        ("responseMatches", linted.expect.response_matches),
        ("maxTokens", linted.expect.max_tokens),
    ):
        if value is not None:
            what = f"The contract allows '{key}' only in labeled evals; evalhub also checks it here."
            fix = "Move the case to a labeled file if other runners read it."
            yield linted.lint(("expect", key), what, fix, "format/labeled-only")
