"""Assertions on tool calls and their parameters (tool-forge eval runner, Assertion Execution 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.grading.assertions.expect import (
    NO_TOOLS,
    PASSED,
    WITHOUT_VALUE,
    Expect,
    ToolCall,
    ToolParam,
    TrialFacts,
    ValueResult,
    resolve_value,
)
from evaluators.grading.template_tokens import TokenSources, resolve_items
from evaluators.patterns import PatternError, compile_pattern, string_of


def check_calls(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that the tools were called exactly as listed, in this order."""
    if expect.tools_called is None:
        return
    if facts.names == expect.tools_called:
        yield PASSED
        return
    reordered = sorted(facts.names) == sorted(expect.tools_called)
    hint = (
        "The same tools were called in another order; toolsAcceptable allows any order." if reordered else ""
    )
    sentence = f"expected {_tool_list(expect.tools_called)} but called {_tool_list(facts.names)}"
    yield ValueResult("failed", sentence, hint=hint)


def acceptable(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that the called tools equal one of the sets, ignoring order and repetition."""
    if expect.tools_acceptable is None:
        return
    if not expect.tools_acceptable:
        yield ValueResult("skipped", "skipped: there is no acceptable set")
        return
    if set(facts.names) in [_without_none(names) for names in expect.tools_acceptable]:
        yield PASSED
        return
    sets = " or ".join(_tool_list(sorted(_without_none(names))) for names in expect.tools_acceptable)
    yield ValueResult("failed", f"expected {sets} in any order but called {_tool_list(facts.names)}")


def not_called(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that none of the tools was called."""
    for name in expect.tools_not_called or ():
        yield ValueResult("failed", f"{name} was called") if name in facts.names else PASSED


def no_errors(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that no call failed: it has a stub in stub mode, else it succeeded. Without execution, do nothing."""
    if not expect.no_tool_errors:
        return
    if expect.stubs is not None:
        yield from _check_stubs(expect.stubs, facts)
    elif facts.executes_tools:
        yield from _check_success(facts)
    else:
        yield ValueResult("moot", "tools are not executed here, so they cannot fail")


def _check_stubs(stubs: Sequence[str], facts: TrialFacts) -> Iterator[ValueResult]:
    missing = [name for name in dict.fromkeys(facts.names) if name not in stubs]
    yield ValueResult("failed", f"no stub for {', '.join(missing)}") if missing else PASSED


def _check_success(facts: TrialFacts) -> Iterator[ValueResult]:
    if not facts.calls:
        yield PASSED
    for call in facts.calls:
        if call.success is None:
            yield ValueResult("skipped", f"the call of {call.name} was skipped: its success is unknown")
        else:
            yield PASSED if call.success else ValueResult("failed", f"{call.name} failed")


def _without_none(names: Sequence[str]) -> set[str]:
    return set() if set(names) == {NO_TOOLS} else set(names)


def _tool_list(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def params(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check each parameter of the first call of its tool; skip tools that were not called."""
    for param in expect.tool_params or ():
        call = next((call for call in facts.calls if call.name == param.tool), None)
        if call is None:
            yield ValueResult("skipped", f"{_path(param)} was skipped: {param.tool} was not called")
        elif param.assertion in WITHOUT_VALUE:
            yield _presence(param, call)
        else:
            yield from _compare(param, call, facts.sources)


def _presence(param: ToolParam, call: ToolCall) -> ValueResult:
    exists = param.param in call.params
    if exists == (param.assertion == "exists"):
        return PASSED
    return ValueResult("failed", f"{_path(param)} {'exists' if exists else 'does not exist'}")


def _compare(param: ToolParam, call: ToolCall, sources: TokenSources) -> Iterator[ValueResult]:
    expected: list[str] = []
    for item in _items(param, sources):
        for resolved in resolve_value(item, sources):
            if isinstance(resolved, ValueResult):
                yield resolved
            else:
                expected.append(resolved)
    if expected:
        yield _check_param(param, call, expected)


def _items(param: ToolParam, sources: TokenSources) -> tuple[str, ...]:
    if not isinstance(param.value, str):
        return param.value
    items = resolve_items(param.value, sources) if param.assertion == "oneOf" else None
    return (param.value,) if items is None else tuple(map(string_of, items))


def _check_param(param: ToolParam, call: ToolCall, expected: list[str]) -> ValueResult:
    if param.param not in call.params:
        return ValueResult("failed", f"parameter missing: {_path(param)}")
    try:
        actual = string_of(call.params[param.param])
        matched = _matches(param.assertion, actual, expected)
    except PatternError as error:
        return ValueResult("failed", f"{_path(param)}: invalid regex: {str(error).rstrip('.')}")
    except RecursionError:
        return ValueResult("failed", f"{_path(param)}: the value is nested too deep to compare")
    if matched:
        return PASSED
    alternatives = " or ".join(f"'{text}'" for text in expected)
    return ValueResult(
        "failed", f"{_path(param)}: expected {param.assertion} {alternatives} but got '{actual}'"
    )


def _matches(assertion: str, actual: str, expected: list[str]) -> bool:
    if assertion == "contains":
        return expected[0] in actual
    if assertion == "matches":
        return compile_pattern(expected[0], javascript=True).search(actual) is not None
    return actual in expected


def _path(param: ToolParam) -> str:
    return f"{param.tool}.{param.param}"
