"""Check which tools were called, how often and in which order (AgentV evaluation, Tool Trajectory Evaluator)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated, Literal

from pydantic import Field

from evaluators.evaluator import BaseEvaluator, Case, EvaluatorResult
from evaluators.evidence import Evidence
from evaluators.traces import has_trace, summary, tool_calls
from evaluators.values import Value

NO_TRACE = "No trace available for evaluation"


class ExpectedTool(Value):
    """One call of a sequence."""

    tool: str = Field(min_length=1)


class ToolTrajectory(BaseEvaluator):
    """Minimum call counts in any order, or a sequence with or without other calls in between."""

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Literal["any_order", "in_order", "exact"]
    minimums: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    expected: tuple[ExpectedTool, ...] = ()

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        if not has_trace(evidence.transcript):
            return EvaluatorResult(0.0, misses=(NO_TRACE,))
        events = evidence.transcript.events
        if self.mode == "any_order":
            return _any_order(self.minimums, summary(events).tool_calls_by_name)
        expected = [step.tool for step in self.expected]
        called = [call.name or "unknown" for call in tool_calls(events)]
        return _in_order(expected, called) if self.mode == "in_order" else _exact(expected, called)


def _any_order(minimums: dict[str, int], counts: dict[str, int]) -> EvaluatorResult:
    """Return the share of met minimums."""
    if not minimums:
        return EvaluatorResult(1.0, hits=("No tool requirements specified",))
    met = {tool: counts.get(tool, 0) >= minimum for tool, minimum in minimums.items()}
    labels = {tool: _label(tool, counts.get(tool, 0), minimum) for tool, minimum in minimums.items()}
    return EvaluatorResult(
        sum(met.values()) / len(met),
        hits=tuple(labels[tool] for tool in met if met[tool]),
        misses=tuple(labels[tool] for tool in met if not met[tool]),
    )


def _label(tool: str, count: int, minimum: int) -> str:
    return f"{tool} called {count} time{'' if count == 1 else 's'} (minimum: {minimum})"


def _in_order(expected: Sequence[str], called: Sequence[str]) -> EvaluatorResult:
    """Score 1.0 if the sequence occurs, with any calls in between, else 0.0."""
    if not expected:
        return EvaluatorResult(1.0, hits=("No tool sequence specified",))
    hits: list[str] = []
    start = 0
    for index, tool in enumerate(expected):
        if tool not in called[start:]:
            return EvaluatorResult(0.0, tuple(hits), (_out_of_order(expected, called, index),))
        position = called.index(tool, start)
        hits.append(f"Found {tool} at position {position}")
        start = position + 1
    return EvaluatorResult(1.0, tuple(hits))


def _out_of_order(expected: Sequence[str], called: Sequence[str], index: int) -> str:
    tool = expected[index]
    order = ", ".join(called) or "none"
    if index == 0:
        return f"Expected {tool}, but it was never called (calls: {order})"
    after = f"Expected {tool} after {expected[index - 1]}"
    if tool in called:
        return f"{after}, but it was only called earlier (order of calls: {order})"
    return f"{after}, but it was never called (calls: {order})"


def _exact(expected: Sequence[str], called: Sequence[str]) -> EvaluatorResult:
    """Score 1.0 if the calls equal the sequence, else 0.0."""
    hits: list[str] = []
    misses: list[str] = []
    for position, (tool, got) in enumerate(zip_longest(expected, called)):
        if tool == got:
            hits.append(f"Position {position}: {tool}")
        elif tool is None:
            misses.append(f"Position {position}: unexpected extra tool call {got}")
        else:
            misses.append(f"Position {position}: expected {tool}, got {got or 'nothing'}")
    return EvaluatorResult(0.0 if misses else 1.0, tuple(hits), tuple(misses))
