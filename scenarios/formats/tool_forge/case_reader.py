"""Translate an eval case of tool-forge, with a line for each problem and a lint for each converted value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from evaluators.grading.assertions.expect import WITHOUT_VALUE, Expect
from evaluators.grading.evaluate import Criteria
from evaluators.grading.template_tokens import tokens_in
from evaluators.model import Json
from evaluators.patterns import PatternError, compile_pattern, string_of
from scenarios.formats.parsed import (
    CaseReading,
    Location,
    PositionedDocument,
    Problem,
    describe_kind,
    validate,
)
from scenarios.formats.tool_forge.case_models import CaseContext, CaseFile, Linted, lints
from scenarios.spec import ScenarioSpec, TrialLimits

NAME_KEYS = ("toolsCalled", "toolsNotCalled", "responseMatches")
"""Lists of texts; a single value is a list of one."""
VALUE_KEYS = ("responseContains", "responseNotContains")
"""Lists of expected texts, which may be numbers; a single value is a list of one."""
GROUP_KEYS = ("toolsAcceptable", "responseContainsAny")
"""Lists of lists; a value in the place of a list is a list of one, and a flat list is a single group."""
TEXT_GROUP_KEYS = ("responseContainsAny",)
"""Those of expected texts."""
_SCALAR = (str, int, float, bool)


@dataclass
class Shaper:
    """Converts one `expect`; `lints` lists the conversions."""

    document: PositionedDocument
    at: Location
    lints: list[Problem] = field(default_factory=list)

    def shape(self, expect: dict[str, Json]) -> dict[str, Json]:
        """Return the present keys in the contract's shape; other values stay unchanged."""
        return {
            key: self._converter(key)(key, value)
            for key, value in expect.items()
            if self._has_value(key, value)
        }

    def _has_value(self, key: str, value: Json) -> bool:
        if value is None:
            self._lint(
                (key,), "The key has no value, so it asserts nothing.", "Remove it.", "format/no-value"
            )
        return value is not None

    def _converter(self, key: str) -> Callable[[str, Json], Json]:
        if key in NAME_KEYS:
            return self._list
        if key in VALUE_KEYS:
            return self._texts
        if key in GROUP_KEYS:
            return self._lists
        return self._list if key == "toolParams" else lambda _, value: value

    def _list(self, key: str, value: Json) -> Json:
        if isinstance(value, dict if key == "toolParams" else _SCALAR):
            self._lint(
                (key,),
                "This must be a list, not a single value.",
                "Write it as a list.",
                "format/scalar-for-list",
            )
            return [value]
        return value

    def _texts(self, key: str, value: Json) -> Json:
        items = self._list(key, value)
        if not isinstance(items, list):
            return items
        return [self._text((key, index), item) for index, item in enumerate(items)]

    def _text(self, at: Location, value: Json) -> Json:
        if isinstance(value, int | float):
            self._lint(
                at, f"{string_of(value)} is compared as text.", "Write it in quotes.", "format/not-text-value"
            )
            return string_of(value)
        return value

    def _lists(self, key: str, value: Json) -> Json:
        items = self._list(key, value)
        if not isinstance(items, list):
            return items
        if items and all(isinstance(item, _SCALAR) for item in items):
            if isinstance(value, list):
                what = "This must be a list of lists; it is read as a single group."
                self._lint((key,), what, "Put the list into a list.", "format/flat-group")
            items = [items]
        groups = [[item] if isinstance(item, _SCALAR) else item for item in items]
        return [self._group((key, index), group) for index, group in enumerate(groups)]

    def _group(self, at: Location, group: Json) -> Json:
        if not isinstance(group, list) or at[0] not in TEXT_GROUP_KEYS:
            return group
        return [self._text((*at, index), item) for index, item in enumerate(group)]

    def _lint(self, at: Location, what: str, fix: str, id: str) -> None:
        self.lints.append(self.document.problem((*self.at, *at), what, fix=fix, id=id, lint=True))


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


def read_case(value: Json, context: CaseContext) -> CaseReading:
    """Translate one case, with all its problems."""
    if not isinstance(value, dict):
        what = f"An eval case must be a mapping, not {describe_kind(value)}."
        fix = 'Write an object with "id", "input" and "expect".'
        return CaseReading(
            problems=[context.document.problem(context.at, what, fix=fix, id="format/wrong-type")]
        )
    fields = {key: item for key, item in value.items() if item is not None}
    case, problems = validate(CaseFile, fields, context.document, context.at)
    read = _expect(case, fields, context)
    reading = CaseReading(problems=[*problems, *read.problems])
    if case is None or read.expect is None:
        return reading
    stubs = None if case.stubs is None else tuple(case.stubs)
    expect = read.expect.model_copy(update={"stubs": stubs})
    reading.problems += lints(Linted(case, expect, context))
    reading.spec = _spec(case, expect, context)
    return reading


def _expect(case: CaseFile | None, fields: dict[str, Json], context: CaseContext) -> ReadExpect:
    written = fields.get("expect")
    if isinstance(written, dict):
        read = read_expect(written, context.document, (*context.at, "expect"), strict=context.strict)
        return replace(read, problems=(*read.problems, *_empty_expect(written, context)))
    return _without_expect(context) if case else ReadExpect(None)


def _empty_expect(written: dict[str, Json], context: CaseContext) -> list[Problem]:
    if written:
        return []
    what = "'expect' is empty, so the case always passes as vacuous."
    at = (*context.at, "expect")
    return [context.document.problem(at, what, fix="Add an assertion.", id="format/vacuous", lint=True)]


def _without_expect(context: CaseContext) -> ReadExpect:
    if context.implied is not None:
        what = "The case has no 'expect', so the routing of its group is asserted."
        fix = "Add 'expect' with toolsCalled or toolsNotCalled."
        id = "format/implied-expect"
        return ReadExpect(
            context.implied, (context.document.problem(context.at, what, fix=fix, id=id, lint=True),)
        )
    what = "The case has no 'expect', so it always passes as vacuous."
    problem = context.document.problem(
        context.at, what, fix='Add "expect" with an assertion.', id="format/vacuous", lint=not context.strict
    )
    return ReadExpect(None if context.strict else Expect(), (problem,))


def _spec(case: CaseFile, expect: Expect, context: CaseContext) -> ScenarioSpec:
    metadata = {"tier": context.tier, "createdAt": case.createdAt, "label": case.label}
    return ScenarioSpec(
        key=case.id,
        description=case.description,
        prompt=case.input.message,
        limits=TrialLimits(max_turns=case.maxTurns),
        tags=tuple(dict.fromkeys(tag for tag in (context.tier, case.difficulty) if tag)),
        criteria=Criteria(expect=expect),
        stubs=case.stubs,
        difficulty=case.difficulty,
        bug_ref=case.bugRef,
        metadata={key: text for key, text in metadata.items() if text},
        file=context.document.file,
        line=context.document.positions.line(context.at),
    )
