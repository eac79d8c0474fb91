"""Assertions on which tools were called (tool-forge eval runner, Assertion Execution 1 and 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.assertions.expect import NO_TOOLS, WITHOUT_VALUE, Expect, ToolParam
from evaluators.assertions.trial_facts import HELD, Facts, ToolCall, ValueResult, resolved
from evaluators.js_text import string_of
from evaluators.patterns import PatternError, compile_pattern
from evaluators.template_tokens import Sources, resolve_items


def called(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The tools were called in exactly this order, as often as listed."""
    if expect.tools_called is None:
        return
    if facts.names == expect.tools_called:
        yield HELD
        return
    reordered = sorted(facts.names) == sorted(expect.tools_called)
    hint = (
        "The same tools were called in another order; toolsAcceptable takes any order." if reordered else ""
    )
    sentence = f"expected {_listed(expect.tools_called)} but called {_listed(facts.names)}"
    yield ValueResult("failed", sentence, hint=hint)


def acceptable(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The tools called are one of the sets; order and repetition do not count."""
    if expect.tools_acceptable is None:
        return
    if not expect.tools_acceptable:
        yield ValueResult("skipped", "skipped: there is no acceptable set")
        return
    if set(facts.names) in [_without_none(names) for names in expect.tools_acceptable]:
        yield HELD
        return
    sets = " or ".join(_listed(sorted(_without_none(names))) for names in expect.tools_acceptable)
    yield ValueResult("failed", f"expected {sets} in any order but called {_listed(facts.names)}")


def not_called(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """None of the tools was called."""
    for name in expect.tools_not_called or ():
        yield ValueResult("failed", f"{name} was called") if name in facts.names else HELD


def included(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """Each of the tools was called, among whatever else was."""
    for name in expect.tools_included or ():
        found = name in facts.names
        yield HELD if found else ValueResult("failed", f"expected {name} among {_listed(facts.names)}")


def no_errors(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """No call went wrong: by the stubs in stub mode, by its success where tools are executed, else a no-op."""
    if not expect.no_tool_errors:
        return
    if expect.stubs is not None:
        yield from _stubbed(expect.stubs, facts)
    elif facts.executes_tools:
        yield from _succeeded(facts)
    else:
        yield ValueResult("moot", "tools are not executed here, so they cannot fail")


def _stubbed(stubs: Sequence[str], facts: Facts) -> Iterator[ValueResult]:
    missing = [name for name in dict.fromkeys(facts.names) if name not in stubs]
    yield ValueResult("failed", f"no stub for {', '.join(missing)}") if missing else HELD


def _succeeded(facts: Facts) -> Iterator[ValueResult]:
    if not facts.calls:
        yield HELD
    for call in facts.calls:
        if call.success is None:
            yield ValueResult(
                "skipped", f"the call of {call.name} was skipped: it does not say whether it succeeded"
            )
        else:
            yield HELD if call.success else ValueResult("failed", f"{call.name} failed")


def _without_none(names: Sequence[str]) -> set[str]:
    return set() if set(names) == {NO_TOOLS} else set(names)


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def params(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """Each parameter of the first call of its tool is as asserted; a tool that was not called is skipped."""
    for param in expect.tool_params or ():
        call = next((call for call in facts.calls if call.name == param.tool), None)
        if call is None:
            yield ValueResult("skipped", f"{_path(param)} was skipped: {param.tool} was not called")
        elif param.assertion in WITHOUT_VALUE:
            yield _presence(param, call)
        else:
            yield from _compared(param, call, facts.sources)


def _presence(param: ToolParam, call: ToolCall) -> ValueResult:
    there = param.param in call.params
    if there == (param.assertion == "exists"):
        return HELD
    return ValueResult("failed", f"{_path(param)} {'exists' if there else 'does not exist'}")


def _compared(param: ToolParam, call: ToolCall, sources: Sources) -> Iterator[ValueResult]:
    expected: list[str] = []
    for item in _items(param, sources):
        for found in resolved(item, sources):
            if isinstance(found, ValueResult):
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


def _verdict(param: ToolParam, call: ToolCall, expected: list[str]) -> ValueResult:
    if param.param not in call.params:
        return ValueResult("failed", f"parameter missing: {_path(param)}")
    try:
        actual = string_of(call.params[param.param])
        holds = _holds(param.assertion, actual, expected)
    except PatternError as error:
        return ValueResult("failed", f"{_path(param)}: invalid regex: {str(error).rstrip('.')}")
    except RecursionError:
        return ValueResult("failed", f"{_path(param)}: the value is nested too deep to be compared")
    if holds:
        return HELD
    wanted = " or ".join(f"'{text}'" for text in expected)
    return ValueResult("failed", f"{_path(param)}: expected {param.assertion} {wanted} but got '{actual}'")


def _holds(assertion: str, actual: str, expected: list[str]) -> bool:
    if assertion == "contains":
        return expected[0] in actual
    if assertion == "matches":
        return compile_pattern(expected[0], javascript=True).search(actual) is not None
    return actual in expected


def _path(param: ToolParam) -> str:
    return f"{param.tool}.{param.param}"
