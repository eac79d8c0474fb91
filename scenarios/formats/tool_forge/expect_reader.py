"""Read `expect` of an eval case, with a line for every problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from evaluators.grading.assertions.expect import WITHOUT_VALUE, Expect
from evaluators.grading.template_tokens import tokens_in
from evaluators.js_text import string_of
from evaluators.model import Json
from evaluators.patterns import PatternError, compile_pattern
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem
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
    expect, problems = validate(Expect, shaped, document, at)
    problems = [*shaper.lints, *(_unknown(problem, strict=strict) for problem in problems)]
    if expect is None:
        return ReadExpect(None, tuple(problems))
    problems += _bad_patterns(expect, document, at)
    problems += _bad_params(shaped, document, at)
    if any(not problem.lint for problem in problems):
        return ReadExpect(None, tuple(problems))
    return ReadExpect(expect, tuple(problems))


def _unknown(problem: Problem, *, strict: bool) -> Problem:
    if problem.id != "format/unknown-key":
        return problem
    if problem.where.rpartition(".")[2] in PROGRAM_ONLY:
        fix = "It is not in tool-forge's contract, so it is not checked. Remove it."
        problem = replace(problem, fix=fix)
    return replace(problem, lint=not strict)


def _bad_patterns(expect: Expect, document: PositionedDocument, at: Location) -> Iterator[Problem]:
    for index, pattern in enumerate(expect.response_matches or ()):
        yield from _bad_pattern(pattern, document, (*at, "responseMatches", index))


def _bad_pattern(pattern: str, document: PositionedDocument, at: Location) -> Iterator[Problem]:
    try:
        compile_pattern(pattern, javascript=True)
    except PatternError as error:
        yield document.problem(at, str(error), fix="Fix the pattern.", id="format/bad-regex")


def _bad_params(shaped: dict[str, Json], document: PositionedDocument, at: Location) -> Iterator[Problem]:
    for index, param in enumerate(shaped.get("toolParams") or ()):
        here, assertion = (*at, "toolParams", index), param["assertion"]
        if "value" in param and assertion in WITHOUT_VALUE:
            what = f"'{assertion}' compares with nothing, so the value is ignored."
            yield document.problem(
                (*here, "value"), what, fix="Remove it.", id="format/needless-value", lint=True
            )
        elif "value" not in param and assertion not in WITHOUT_VALUE:
            what = f"'{assertion}' needs a value to compare with."
            yield document.problem(here, what, fix='Add "value".', id="format/missing-field")
        yield from _bad_param_value(assertion, param.get("value"), document, (*here, "value"))


def _bad_param_value(
    assertion: str, value: Json, document: PositionedDocument, at: Location
) -> Iterator[Problem]:
    if assertion in WITHOUT_VALUE:
        return
    if assertion == "oneOf" and not isinstance(value, list):
        what = "'oneOf' needs a list; this is read as a list with one value."
        yield document.problem(at, what, fix="Write it as a list.", id="format/scalar-for-list", lint=True)
    elif assertion == "oneOf" and not value:
        what = "The list is empty, so no value matches."
        yield document.problem(at, what, fix="List the allowed values.", id="format/empty-value")
    elif assertion == "matches" and not tokens_in(string_of(value)):
        yield from _bad_pattern(string_of(value), document, at)
