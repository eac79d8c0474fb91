"""AgentV's limits on what a trial takes: time, cost, tokens, calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, TrialEvidence
from evaluators.model import Amount, Share
from evaluators.transcripts.traces import calls_of_trace, has_trace

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

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        return _all_or_nothing([_check_duration(evidence, self.threshold)])


class CostLimit(BaseEvaluator):
    """The highest cost of the agent."""

    type: Literal["cost"] = "cost"
    budget: Amount
    """US dollars."""

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        return _all_or_nothing([_check_cost(evidence, self.budget)])


class TokenLimit(BaseEvaluator):
    """The most tokens of the agent."""

    type: Literal["token-usage"] = "token-usage"
    max_total: Amount | None = None
    max_input: Amount | None = None
    max_output: Amount | None = None

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
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

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        checks = list(self._checks(evidence))
        met = sum(holds for holds, _ in checks)
        return EvaluatorResult(met / len(checks) if checks else 0.0, *_hits_and_misses(checks))

    def _checks(self, evidence: TrialEvidence) -> Iterator[Check]:
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


def _model_calls(evidence: TrialEvidence) -> float:
    """Return the model's steps, else its messages where a trace has no steps."""
    events = evidence.transcript.events
    steps = sum(event.type == "model_step" for event in events)
    return float(steps or sum(event.type == "message" and event.role != "user" for event in events))


def _check_duration(evidence: TrialEvidence, most: float) -> Check:
    return _at_most("time in ms", round(evidence.seconds * 1000, 3), most)


def _check_cost(evidence: TrialEvidence, most: float) -> Check:
    return _at_most("cost in US dollars", evidence.cost_usd, most)


def _check_tokens(evidence: TrialEvidence, name: str, most: float) -> Check:
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
