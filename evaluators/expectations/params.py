"""Assertions on the parameters of a tool call (tool-forge eval runner, Assertion Execution 2)."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.expectations.expect import WITHOUT_VALUE, Expect, ToolParam
from evaluators.expectations.facts import HELD, Atom, Facts, ToolCall, resolved
from evaluators.js_text import string_of
from evaluators.patterns import PatternError, compile_pattern
from evaluators.tokens import Sources, resolve_items


def params(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """Each parameter of the first call of its tool is as asserted; a tool that was not called is skipped."""
    for param in expect.tool_params or ():
        call = next((call for call in facts.calls if call.name == param.tool), None)
        if call is None:
            yield Atom("skipped", f"{_path(param)} was skipped: {param.tool} was not called")
        elif param.assertion in WITHOUT_VALUE:
            yield _presence(param, call)
        else:
            yield from _compared(param, call, facts.sources)


def _presence(param: ToolParam, call: ToolCall) -> Atom:
    there = param.param in call.params
    if there == (param.assertion == "exists"):
        return HELD
    return Atom("failed", f"{_path(param)} {'exists' if there else 'does not exist'}")


def _compared(param: ToolParam, call: ToolCall, sources: Sources) -> Iterator[Atom]:
    expected: list[str] = []
    for item in _items(param, sources):
        for found in resolved(item, sources):
            if isinstance(found, Atom):
                yield found
            else:
                expected.append(found)
    if expected:
        yield _verdict(param, call, expected)


def _items(param: ToolParam, sources: Sources) -> tuple[str, ...]:
    if not isinstance(param.value, str):
        return param.value
    items = resolve_items(param.value, sources) if param.assertion == "oneOf" else None
    return (param.value,) if items is None else tuple(map(string_of, items))


def _verdict(param: ToolParam, call: ToolCall, expected: list[str]) -> Atom:
    if param.param not in call.params:
        return Atom("failed", f"parameter missing: {_path(param)}")
    try:
        actual = string_of(call.params[param.param])
        holds = _holds(param.assertion, actual, expected)
    except PatternError as error:
        return Atom("failed", f"{_path(param)}: invalid regex: {str(error).rstrip('.')}")
    except RecursionError:
        return Atom("failed", f"{_path(param)}: the value is nested too deep to be compared")
    if holds:
        return HELD
    wanted = " or ".join(f"'{text}'" for text in expected)
    return Atom("failed", f"{_path(param)}: expected {param.assertion} {wanted} but got '{actual}'")


def _holds(assertion: str, actual: str, expected: list[str]) -> bool:
    if assertion == "contains":
        return expected[0] in actual
    if assertion == "matches":
        return compile_pattern(expected[0], javascript=True).search(actual) is not None
    return actual in expected


def _path(param: ToolParam) -> str:
    return f"{param.tool}.{param.param}"
