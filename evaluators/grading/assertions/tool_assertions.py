"""Assertions on tool calls and their parameters (tool-forge eval runner, Assertion Execution 1 to 3).

AgentV's limits on what a trial takes: time, cost, tokens, calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

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
from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, Evidence
from evaluators.grading.stub_loop import TokenSources, resolve_items
from evaluators.model import Amount, Share
from evaluators.patterns import PatternError, compile_pattern, string_of
from evaluators.transcripts.traces import calls_of_trace, has_trace


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


Check = tuple[bool, str]
"""Whether a limit is met, and a sentence."""
EXPLORING = frozenset(
    ("read", "grep", "glob", "search", "list", "Read", "Grep", "Glob", "WebSearch", "WebFetch")
)
"""Tools that look at something and change nothing."""
_UNKNOWN = "The {} is unknown"


class LatencyLimit(BaseEvaluator):
    """The longest time of the agent."""

    type: Literal["latency"] = "latency"
    threshold: Amount
    """Milliseconds."""

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        return _all_or_nothing([_check_duration(evidence, self.threshold)])


class CostLimit(BaseEvaluator):
    """The highest cost of the agent."""

    type: Literal["cost"] = "cost"
    budget: Amount
    """US dollars."""

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        return _all_or_nothing([_check_cost(evidence, self.budget)])


class TokenLimit(BaseEvaluator):
    """The most tokens of the agent."""

    type: Literal["token-usage"] = "token-usage"
    max_total: Amount | None = None
    max_input: Amount | None = None
    max_output: Amount | None = None

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        limits = {"input": self.max_input, "output": self.max_output, "total": self.max_total}
        results = [_check_tokens(evidence, name, most) for name, most in limits.items() if most is not None]
        return _all_or_nothing(results)


class ExecutionLimits(BaseEvaluator):
    """Several limits at once; the score is the share that is met."""

    type: Literal["execution-metrics"] = "execution-metrics"
    max_tool_calls: Amount | None = None
    max_llm_calls: Amount | None = None
    max_tokens: Amount | None = None
    max_cost_usd: Amount | None = None
    max_duration_ms: Amount | None = None
    target_exploration_ratio: Share | None = None
    exploration_tolerance: Amount = 0.2

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        checks = list(self._checks(evidence))
        met = sum(holds for holds, _ in checks)
        return EvaluatorResult(met / len(checks) if checks else 0.0, *_hits_and_misses(checks))

    def _checks(self, evidence: Evidence) -> Iterator[Check]:
        events = evidence.transcript.events
        known = has_trace(evidence.transcript)
        called = calls_of_trace(events)
        if self.max_tool_calls is not None:
            yield _at_most("number of tool calls", float(len(called)) if known else None, self.max_tool_calls)
        if self.max_llm_calls is not None:
            yield _at_most(
                "number of model calls", _model_calls(evidence) if known else None, self.max_llm_calls
            )
        if self.max_tokens is not None:
            yield _check_tokens(evidence, "total", self.max_tokens)
        if self.max_cost_usd is not None:
            yield _check_cost(evidence, self.max_cost_usd)
        if self.max_duration_ms is not None:
            yield _check_duration(evidence, self.max_duration_ms)
        if self.target_exploration_ratio is not None:
            share = sum(call.name in EXPLORING for call in called) / len(called) if called else None
            yield self._check_exploration(share, self.target_exploration_ratio)

    def _check_exploration(self, share: float | None, target: float) -> Check:
        if share is None:
            return False, _UNKNOWN.format("share of exploring calls")
        met = abs(share - target) <= self.exploration_tolerance
        wanted = f"wanted {target:g} ± {self.exploration_tolerance:g}"
        return met, f"The share of exploring calls is {share:.2f}, {wanted}"


def _model_calls(evidence: Evidence) -> float:
    """Return the model's steps, else its messages where a trace has no steps."""
    events = evidence.transcript.events
    steps = sum(event.type == "model_step" for event in events)
    return float(steps or sum(event.type == "message" and event.role != "user" for event in events))


def _check_duration(evidence: Evidence, most: float) -> Check:
    return _at_most("time in ms", round(evidence.seconds * 1000, 3), most)


def _check_cost(evidence: Evidence, most: float) -> Check:
    return _at_most("cost in US dollars", evidence.cost_usd, most)


def _check_tokens(evidence: Evidence, name: str, most: float) -> Check:
    usage = evidence.usage
    written = usage.known_output if usage else None
    counts: dict[str, int | None] = {"input": usage.input, "output": written} if usage else {}
    if usage and written is not None:
        counts["total"] = usage.input + written
    return _at_most(f"number of {name} tokens", counts.get(name), most)


def _at_most(what: str, value: float | None, most: float) -> Check:
    if value is None:
        return False, _UNKNOWN.format(what)
    return value <= most, f"The {what} is {value:g}, at most {most:g}"


def _all_or_nothing(checks: list[Check]) -> EvaluatorResult:
    return EvaluatorResult(float(all(holds for holds, _ in checks)), *_hits_and_misses(checks))


def _hits_and_misses(checks: list[Check]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(text for holds, text in checks if holds), tuple(text for holds, text in checks if not holds)
