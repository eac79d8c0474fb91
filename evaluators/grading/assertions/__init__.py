"""Layer 2 of tool-forge: the assertions of an eval case, in the order of the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from evaluators.grading.assertions import expect, tool_assertions
from evaluators.grading.assertions.expect import (
    TIMED_OUT,
    AssertionResult,
    CaseVerdict,
    Expect,
    ToolCall,
    ToolParam,
    TrialFacts,
    ValueResult,
    calls_of_transcript,
    case_verdict,
    facts_of,
)
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import Json, Score

__all__ = [
    "ASSERTIONS",
    "VERDICT",
    "AssertionResult",
    "CaseVerdict",
    "Expect",
    "ToolCall",
    "ToolParam",
    "TrialFacts",
    "calls_of_transcript",
    "case_verdict",
    "check_assertions",
    "scores",
]

VERDICT = "verdict"
"""The name of the score with the contract's verdict on the whole case."""

ASSERTIONS: dict[str, Callable[[Expect, TrialFacts], Iterator[ValueResult]]] = {
    "toolsCalled": tool_assertions.check_calls,
    "toolsAcceptable": tool_assertions.acceptable,
    "toolsNotCalled": tool_assertions.not_called,
    "toolParams": tool_assertions.params,
    "noToolErrors": tool_assertions.no_errors,
    "responseNonEmpty": expect.non_empty,
    "responseContains": expect.check_contains,
    "responseContainsAny": expect.contains_any,
    "responseNotContains": expect.not_contains,
    "responseMatches": expect.matches,
    "maxLatencyMs": expect.latency,
    "maxTokens": expect.check_tokens,
}
"""The check of each key, in the contract's order."""


def check_assertions(expect: Expect, facts: TrialFacts) -> tuple[AssertionResult, ...]:
    """Return the result of every key that asserts something, including those after the first failure."""
    results = (AssertionResult(key, tuple(assertion(expect, facts))) for key, assertion in ASSERTIONS.items())
    return tuple(result for result in results if result.values)


def score_assertions(expect: Expect | None, evidence: TrialEvidence) -> tuple[Score, ...]:
    """Return the verdict on the case, then one score for each key; after a timeout only the verdict."""
    if expect is None:
        return ()
    if evidence.timed_out:
        return (_case_score(TIMED_OUT),)
    facts = facts_of(evidence)
    results = check_assertions(expect, facts)
    return (_case_score(case_verdict(results)), *(_assertion_score(result, facts) for result in results))


def _case_score(verdict: CaseVerdict) -> Score:
    detail: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(verdict))
    message = verdict.error or ("Nothing was asserted." if verdict.vacuous else "All assertions passed.")
    return Score("assertions", VERDICT, float(verdict.passed), verdict.passed, message, detail)


def _assertion_score(result: AssertionResult, facts: TrialFacts) -> Score:
    passed = result.passed
    detail: dict[str, Json] = {"failures": list(result.failures), "skipped": _skipped_values(result)}
    if result.key == "maxTokens":
        detail["tokens"] = msgspec.to_builtins(facts.tokens)
    value = None if passed is None else float(passed)
    return Score("assertions", result.key, value, passed, _message(result), detail)


def _skipped_values(result: AssertionResult) -> list[Json]:
    return [value.sentence for value in result.values if value.state == "skipped"]


def _message(result: AssertionResult) -> str:
    failure = next((value for value in result.values if value.state == "failed"), None)
    if failure is not None:
        return f"{failure.sentence}. {failure.hint}".rstrip()
    return "Passed." if result.passed else ". ".join(value.sentence for value in result.values) + "."
