"""Translate one eval case of tool-forge."""

from __future__ import annotations

from dataclasses import replace

from evaluators.grading.assertions.expect import Expect
from evaluators.grading.criteria import Criteria
from evaluators.model import Json
from scenarios.formats.parsed import CaseReading
from scenarios.formats.problems import Problem
from scenarios.formats.tool_forge.case_lints import CaseContext, Linted, lints
from scenarios.formats.tool_forge.case_models import CaseFile
from scenarios.formats.tool_forge.expect_reader import ReadExpect, read_expect
from scenarios.formats.validation import kind, validate
from scenarios.spec import ScenarioSpec, TrialLimits


def read_case(value: Json, context: CaseContext) -> CaseReading:
    """Translate one case, with all its problems."""
    if not isinstance(value, dict):
        what = f"An eval case must be a mapping, not {kind(value)}."
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
