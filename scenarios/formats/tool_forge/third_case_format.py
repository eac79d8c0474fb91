"""Translate the third case format, `expectedTool` with `checks`, which no runner of tool-forge reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from evaluators.grading.assertions.expect import Expect, ToolParam
from evaluators.js_text import string_of
from evaluators.model import Json
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem
from scenarios.formats.tool_forge.case_models import CaseFile, CheckFile
from scenarios.formats.validation import validate


@dataclass
class Translation:
    """A case as assertions of the contract; `tool_called` becomes evalhub's own assertion."""

    expect: Expect
    problems: list[Problem] = field(default_factory=list)


def is_third_format(case: CaseFile) -> bool:
    """Return whether a case has an asserting key of the third format."""
    return any(
        value is not None for value in (case.expectedTool, case.expectedTools, case.expectedArgs, case.checks)
    )


def translate(case: CaseFile, document: PositionedDocument, at: Location, *, strict: bool) -> Translation:
    """Return the assertions of a case in the third format."""
    what = "The case has no 'expect', so expectedTool, expectedArgs and checks are used as assertions."
    fix = "Write them as 'expect', which other runners also read."
    problems = [document.problem(at, what, fix=fix, id="format/case-without-expect", lint=not strict)]
    checks = []
    for index, item in enumerate(case.checks or ()):
        check, check_problems = validate(CheckFile, item, document, (*at, "checks", index))
        problems += [replace(problem, lint=problem.lint or not strict) for problem in check_problems]
        checks += [(index, check)] if check is not None else []
    tools = _expected_tools(case)
    named = tuple(check.tool for _, check in checks if check.type == "tool_called" and check.tool)
    params = [
        ToolParam(tool=tool, param=name, assertion="equals", value=string_of(value))
        for tool, name, value in _arguments(case, tools or named)
    ]
    for index, check in checks:
        if check.type == "arg_equals":
            param, more = _argument(check, tools or named, document, (*at, "checks", index))
            params += param
            problems += more
    problems += _not_checked(case, tools or named, document, at)
    expect = Expect(
        tools_called=tools,
        tools_included=tuple(dict.fromkeys(named)) or None,
        tool_params=tuple(dict.fromkeys(params)) or None,
    )
    return Translation(expect, problems)


def _expected_tools(case: CaseFile) -> tuple[str, ...] | None:
    if case.expectedTools is not None:
        return tuple(case.expectedTools)
    return None if case.expectedTool is None else (case.expectedTool,)


def _arguments(case: CaseFile, tools: tuple[str, ...]) -> Iterator[tuple[str, str, Json]]:
    if tools:
        for name, value in (case.expectedArgs or {}).items():
            yield tools[0], name, value


def _argument(
    check: CheckFile, tools: tuple[str, ...], document: PositionedDocument, at: Location
) -> tuple[list[ToolParam], list[Problem]]:
    tool = check.tool or (tools[0] if tools else None)
    if tool is not None and check.arg is not None:
        value = string_of(check.value)
        return [ToolParam(tool=tool, param=check.arg, assertion="equals", value=value)], []
    missing = "tool" if check.arg is not None else "arg"
    what = f"The check has no {missing}, so it is ignored."
    fix = f"Add '{missing}'."
    return [], [document.problem(at, what, fix=fix, id="format/not-checked", lint=True)]


def _not_checked(
    case: CaseFile, tools: tuple[str, ...], document: PositionedDocument, at: Location
) -> Iterator[Problem]:
    if case.label:
        what = "The label rates a reference answer, so it is stored and not checked."
        fix = "Assert the response in 'expect'."
        yield document.problem((*at, "label"), what, fix=fix, id="format/not-checked", lint=True)
    if case.expectedArgs and not tools:
        what = "These arguments have no tool, so they are not checked."
        fix = "Add 'expectedTool'."
        yield document.problem((*at, "expectedArgs"), what, fix=fix, id="format/not-checked", lint=True)
