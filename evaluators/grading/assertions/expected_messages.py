"""Compare the tool calls of `expected_messages` with the trace (AgentV evaluation, Expected Messages Tool Call Validation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, ExpectedCall, TrialEvidence
from evaluators.json_values import are_equal
from evaluators.model import Event
from evaluators.transcripts.traces import calls_of_trace, has_trace

NO_TRACE = "No trace available to validate tool_calls"


class ExpectedMessages(BaseEvaluator):
    """Compare expected calls with actual calls by position; extra calls are allowed."""

    type: Literal["expected_messages"] = "expected_messages"

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        expected = [call for message in case.expected_messages for call in message.tool_calls]
        if not expected:
            return EvaluatorResult(1.0, hits=("No tool_calls specified in expected_messages",))
        events = evidence.transcript.events
        if not has_trace(evidence.transcript) or not events:
            return EvaluatorResult(0.0, misses=(NO_TRACE,))
        return compare_calls(expected, calls_of_trace(events))


def compare_calls(expected: Sequence[ExpectedCall], called: Sequence[Event]) -> EvaluatorResult:
    """Return the share of expected calls matched at their position."""
    hits: list[str] = []
    misses: list[str] = []
    for index, call in enumerate(expected):
        actual = called[index] if index < len(called) else None
        miss = _mismatch(call, actual)
        (misses if miss else hits).append(f"tool_calls[{index}]: {miss or f'{call.tool} matched'}")
    return EvaluatorResult(len(hits) / len(expected), tuple(hits), tuple(misses))


def _mismatch(call: ExpectedCall, actual: Event | None) -> str:
    """Return the difference from the expected call, empty if it matches."""
    if actual is None:
        return f"expected {call.tool}, but no more tool calls in trace"
    if actual.name != call.tool:
        return f"expected {call.tool}, got {actual.name or 'unknown'}"
    if call.input is not None and not are_equal(call.input, actual.input):
        return "input mismatch"
    return ""
