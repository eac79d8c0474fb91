"""One eval case, translated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evaluators.assertions.expect import Expect
from evaluators.criteria import Criteria
from evaluators.model import Json
from scenarios.formats.positions import Document, Location
from scenarios.formats.problems import Problem
from scenarios.formats.tool_forge.checks import is_third_format, translate
from scenarios.formats.tool_forge.expect import ReadExpect, read_expect
from scenarios.formats.tool_forge.lints import Linted, lints
from scenarios.formats.tool_forge.mirror import CaseFile
from scenarios.formats.validation import kind, validate
from scenarios.spec import Limits, ScenarioSpec


@dataclass(frozen=True)
class Place:
    """Where a case stands, and what holds for all cases there."""

    document: Document
    at: Location
    tier: str
    has_seed: bool
    strict: bool
    implied: Expect | None = None
    """What a case without `expect` asserts because of the group it stands in."""


@dataclass
class CaseReading:
    """What became of one case. Without a `spec` the problems say why."""

    spec: ScenarioSpec | None = None
    problems: list[Problem] = field(default_factory=list)


def read_case(value: Json, place: Place) -> CaseReading:
    """Translate one case; every problem of it is in the result."""
    if not isinstance(value, dict):
        what = f"An eval case must be a mapping, not {kind(value)}."
        fix = 'Write an object with "id", "input" and "expect".'
        return CaseReading(problems=[place.document.problem(place.at, what, fix=fix, id="format/wrong-type")])
    given = {key: item for key, item in value.items() if item is not None}
    case, problems = validate(CaseFile, given, place.document, place.at)
    read = _expect(case, given, place)
    reading = CaseReading(problems=[*problems, *read.problems])
    if case is None or read.expect is None:
        return reading
    stubs = None if case.stubs is None else tuple(case.stubs)
    expect = read.expect.model_copy(update={"stubs": stubs})
    reading.problems += lints(Linted(case, expect, place.tier, place.has_seed, place.document, place.at))
    reading.spec = _spec(case, expect, place)
    return reading


def _expect(case: CaseFile | None, given: dict[str, Json], place: Place) -> ReadExpect:
    written = given.get("expect")
    if isinstance(written, dict):
        read = read_expect(written, place.document, (*place.at, "expect"), strict=place.strict)
        return replace(
            read, problems=(*read.problems, *_beside_expect(case, place), *_says_nothing(written, place))
        )
    if case is None:
        return ReadExpect(None)
    if is_third_format(case):
        found = translate(case, place.document, place.at, strict=place.strict)
        return ReadExpect(found.expect, tuple(found.problems))
    return _without_expect(place)


def _beside_expect(case: CaseFile | None, place: Place) -> list[Problem]:
    if case is None or not is_third_format(case):
        return []
    what = "expectedTool, expectedArgs and checks stand beside 'expect', which alone counts."
    return [place.document.problem(place.at, what, fix="Remove them.", id="format/not-checked", lint=True)]


def _says_nothing(written: dict[str, Json], place: Place) -> list[Problem]:
    if written:
        return []
    what = "'expect' is empty, so the case always passes and is marked as vacuous."
    at = (*place.at, "expect")
    return [place.document.problem(at, what, fix="Add an assertion.", id="format/vacuous", lint=True)]


def _without_expect(place: Place) -> ReadExpect:
    if place.implied is not None:
        what = "The case has no 'expect', so the routing that its group asks for is asserted."
        fix = "Add 'expect' with toolsCalled or toolsNotCalled."
        id = "format/implied-expect"
        return ReadExpect(place.implied, (place.document.problem(place.at, what, fix=fix, id=id, lint=True),))
    what = "The case has no 'expect', so it always passes and is marked as vacuous."
    problem = place.document.problem(
        place.at, what, fix='Add "expect" with an assertion.', id="format/vacuous", lint=not place.strict
    )
    return ReadExpect(None if place.strict else Expect(), (problem,))


def _spec(case: CaseFile, expect: Expect, place: Place) -> ScenarioSpec:
    kept = {"tier": place.tier, "createdAt": case.createdAt, "label": case.label}
    return ScenarioSpec(
        key=case.id,
        description=case.description,
        prompt=case.input.message,
        limits=Limits(max_turns=case.maxTurns),
        tags=tuple(dict.fromkeys(tag for tag in (place.tier, case.difficulty) if tag)),
        criteria=Criteria(expect=expect),
        stubs=case.stubs,
        difficulty=case.difficulty,
        bug_ref=case.bugRef,
        metadata={key: text for key, text in kept.items() if text},
        file=place.document.file,
        line=place.document.positions.line(place.at),
    )
