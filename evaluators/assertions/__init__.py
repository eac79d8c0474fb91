"""Layer 2 of tool-forge: the assertions of an eval case, in the order of its contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from evaluators.assertions import response_assertions, tool_assertions
from evaluators.assertions.case_verdict import TIMED_OUT, AssertionResult, CaseVerdict, verdict
from evaluators.assertions.expect import Expect, ToolParam
from evaluators.assertions.trial_facts import Facts, ToolCall, ValueResult, facts_of, tool_calls
from evaluators.evidence import Evidence
from evaluators.model import Json, Score

__all__ = [
    "ASSERTIONS",
    "VERDICT",
    "AssertionResult",
    "CaseVerdict",
    "Expect",
    "Facts",
    "ToolCall",
    "ToolParam",
    "find",
    "scores",
    "tool_calls",
    "verdict",
]

VERDICT = "verdict"
"""Name of the score that holds the contract's verdict on the whole case."""

ASSERTIONS: dict[str, Callable[[Expect, Facts], Iterator[ValueResult]]] = {
    "toolsCalled": tool_assertions.called,
    "toolsAcceptable": tool_assertions.acceptable,
    "toolsNotCalled": tool_assertions.not_called,
    "tool_called": tool_assertions.included,
    "toolParams": tool_assertions.params,
    "noToolErrors": tool_assertions.no_errors,
    "responseNonEmpty": response_assertions.non_empty,
    "responseContains": response_assertions.contains,
    "responseContainsAny": response_assertions.contains_any,
    "responseNotContains": response_assertions.not_contains,
    "responseMatches": response_assertions.matches,
    "maxLatencyMs": response_assertions.latency,
    "maxTokens": response_assertions.tokens,
}
"""Each key with what it asserts, in the order in which the contract runs them."""


def find(expect: Expect, facts: Facts) -> tuple[AssertionResult, ...]:
    """Return what came of every key that asserts something, the ones after the first failure too."""
    findings = (
        AssertionResult(key, tuple(assertion(expect, facts))) for key, assertion in ASSERTIONS.items()
    )
    return tuple(finding for finding in findings if finding.atoms)


def scores(expect: Expect | None, evidence: Evidence) -> tuple[Score, ...]:
    """Return one score a key, after the verdict on the case; a trial that timed out has only the verdict."""
    if expect is None:
        return ()
    if evidence.timed_out:
        return (_of_case(TIMED_OUT),)
    facts = facts_of(evidence)
    findings = find(expect, facts)
    return (_of_case(verdict(findings)), *(_of_key(finding, facts) for finding in findings))


def _of_case(found: CaseVerdict) -> Score:
    detail: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(found))
    message = found.error or ("Nothing was asserted." if found.vacuous else "Every assertion holds.")
    return Score("assertions", VERDICT, float(found.passed), found.passed, message, detail)


def _of_key(finding: AssertionResult, facts: Facts) -> Score:
    passed = finding.passed
    detail: dict[str, Json] = {"failures": list(finding.failures), "skipped": _skipped(finding)}
    if finding.key == "maxTokens":
        detail["tokens"] = msgspec.to_builtins(facts.tokens)
    value = None if passed is None else float(passed)
    return Score("assertions", finding.key, value, passed, _message(finding), detail)


def _skipped(finding: AssertionResult) -> list[Json]:
    return [atom.sentence for atom in finding.atoms if atom.state == "skipped"]


def _message(finding: AssertionResult) -> str:
    told = next((atom for atom in finding.atoms if atom.state == "failed"), None)
    if told is not None:
        return f"{told.sentence}. {told.hint}".rstrip()
    return "Holds." if finding.passed else ". ".join(atom.sentence for atom in finding.atoms) + "."
