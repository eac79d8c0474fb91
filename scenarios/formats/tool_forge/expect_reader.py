"""Read `expect` of an eval case, with a line for every problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from evaluators.grading.assertions.expect import WITHOUT_VALUE, Expect, ToolParam
from evaluators.grading.template_tokens import tokens_in
from evaluators.js_text import string_of
from evaluators.model import Json
from evaluators.patterns import PatternError, compile_pattern
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem
from scenarios.formats.tool_forge.case_models import ExpectFile, ParamFile
from scenarios.formats.tool_forge.expect_shapes import Shaper
from scenarios.formats.validation import validate

PROGRAM_ONLY = frozenset(
    (
        *("maxCost", "minToolCalls", "maxToolCalls", "jsonValid", "minLength", "maxLength", "regexPattern"),
        *("copOutPhrases", "schemaData", "requiredKeys", "typeChecks"),
    )
)
"""Keys of tool-forge's program that are not in its contract."""


@dataclass(frozen=True)
class ReadExpect:
    """The assertions of a valid `expect`, and its problems."""

    expect: Expect | None
    problems: tuple[Problem, ...] = ()


def read_expect(
    value: dict[str, Json], document: PositionedDocument, at: Location, *, strict: bool
) -> ReadExpect:
    """Translate an `expect`. Unknown keys are lints, or errors if `strict`."""
    shaper = Shaper(document, at)
    shaped = shaper.shape(value)
    expect_file, problems = validate(ExpectFile, shaped, document, at)
    problems = [*shaper.lints, *(_unknown(problem, strict=strict) for problem in problems)]
    if expect_file is None:
        return ReadExpect(None, tuple(problems))
    problems += _bad_patterns(expect_file, document, at)
    problems += _bad_params(expect_file, shaped, document, at)
    if any(not problem.lint for problem in problems):
        return ReadExpect(None, tuple(problems))
    return ReadExpect(_translate(expect_file), tuple(problems))


def _unknown(problem: Problem, *, strict: bool) -> Problem:
    if problem.id != "format/unknown-key":
        return problem
    if problem.where.rpartition(".")[2] in PROGRAM_ONLY:
        fix = "It is not in tool-forge's contract, so it is not checked. Remove it."
        problem = replace(problem, fix=fix)
    return replace(problem, lint=not strict)


def _bad_patterns(expect_file: ExpectFile, document: PositionedDocument, at: Location) -> Iterator[Problem]:
    for index, pattern in enumerate(expect_file.responseMatches or ()):
        yield from _bad_pattern(pattern, document, (*at, "responseMatches", index))


def _bad_pattern(pattern: str, document: PositionedDocument, at: Location) -> Iterator[Problem]:
    try:
        compile_pattern(pattern, javascript=True)
    except PatternError as error:
        yield document.problem(at, str(error), fix="Fix the pattern.", id="format/bad-regex")


def _bad_params(
    expect_file: ExpectFile, shaped: dict[str, Json], document: PositionedDocument, at: Location
) -> Iterator[Problem]:
    for index, param in enumerate(expect_file.toolParams or ()):
        here = (*at, "toolParams", index)
        has_value = "value" in shaped["toolParams"][index]
        if has_value and param.assertion in WITHOUT_VALUE:
            what = f"'{param.assertion}' compares with nothing, so the value is ignored."
            yield document.problem(
                (*here, "value"), what, fix="Remove it.", id="format/needless-value", lint=True
            )
        elif not has_value and param.assertion not in WITHOUT_VALUE:
            what = f"'{param.assertion}' needs a value to compare with."
            yield document.problem(here, what, fix='Add "value".', id="format/missing-field")
        yield from _bad_param_value(param, document, (*here, "value"))


def _bad_param_value(param: ParamFile, document: PositionedDocument, at: Location) -> Iterator[Problem]:
    if param.assertion in WITHOUT_VALUE:
        return
    if param.assertion == "oneOf" and not isinstance(param.value, list):
        what = "'oneOf' needs a list; this is read as a list with one value."
        yield document.problem(at, what, fix="Write it as a list.", id="format/scalar-for-list", lint=True)
    elif param.assertion == "oneOf" and not param.value:
        what = "The list is empty, so no value matches."
        yield document.problem(at, what, fix="List the allowed values.", id="format/empty-value")
    elif param.assertion == "matches" and not tokens_in(string_of(param.value)):
        yield from _bad_pattern(string_of(param.value), document, at)


def _translate(expect_file: ExpectFile) -> Expect:
    return Expect(
        tools_called=_tuple(expect_file.toolsCalled),
        tools_acceptable=_tuples(expect_file.toolsAcceptable),
        tools_not_called=_tuple(expect_file.toolsNotCalled),
        tool_params=None if expect_file.toolParams is None else tuple(map(_param, expect_file.toolParams)),
        no_tool_errors=expect_file.noToolErrors,
        response_non_empty=expect_file.responseNonEmpty,
        response_contains=_tuple(expect_file.responseContains),
        response_contains_any=_tuples(expect_file.responseContainsAny),
        response_not_contains=_tuple(expect_file.responseNotContains),
        response_matches=_tuple(expect_file.responseMatches),
        max_latency_ms=expect_file.maxLatencyMs,
        max_tokens=expect_file.maxTokens,
    )


def _param(param: ParamFile) -> ToolParam:
    value: str | tuple[str, ...] = ""
    if param.assertion == "oneOf" and isinstance(param.value, list):
        value = tuple(map(string_of, param.value))
    elif param.assertion not in WITHOUT_VALUE:
        value = string_of(param.value)
    return ToolParam(tool=param.tool, param=param.paramName, assertion=param.assertion, value=value)


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _tuples(values: list[list[str]] | None) -> tuple[tuple[str, ...], ...] | None:
    return None if values is None else tuple(map(tuple, values))
