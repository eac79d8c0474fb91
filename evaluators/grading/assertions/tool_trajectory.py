"""Check which tools were called, how often and in which order (AgentV evaluation, Tool Trajectory Evaluator).

Arguments and durations of single calls follow AgentV 2.1, which added them; shares, `subset` and `superset` follow
AgentV 4.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import zip_longest
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from evalhub.lib.limits import LONGEST_NAME
from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, TrialEvidence, invert
from evaluators.json_values import are_equal
from evaluators.model import AS_TUPLE, Amount, Count, Event, Json, StrictModel, Text
from evaluators.tool_use.calls import Call, pair_calls
from evaluators.transcripts.traces import has_trace, summarize_trace

NO_TRACE = "No trace available for evaluation"
Rule = Literal["superset", "subset", "exact", "ignore"]


def _read_rule(value: Json) -> Json:
    if value in get_args(Rule):
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    raise ValueError("This must be superset, subset, exact or ignore, or a list of names of arguments")


ArgsMatch = Annotated[
    Rule | tuple[str, ...],
    BeforeValidator(
        _read_rule,
        json_schema_input_type=Rule
        | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)],
    ),
]
"""Which arguments must be equal: the expected ones, those of the call, all, none, or these (`a.b` is nested)."""


def _read_args(value: Json) -> Json:
    """Read `any` as no condition."""
    return None if value == "any" else value


class ExpectedTool(StrictModel):
    """One call of a sequence."""

    decisive: ClassVar[Mapping[str, str]] = {
        "input": "Write 'args:'.",
        "output": "Remove it: outputs are not compared.",
    }
    """Keys of other versions that decide, so that they can't be ignored; what to write instead."""

    tool: Text
    args: Annotated[
        dict[str, Json] | None,
        BeforeValidator(_read_args, json_schema_input_type=dict[str, Json] | Literal["any"] | None),
    ] = None
    """Its arguments; None accepts any."""
    args_match: ArgsMatch | None = None
    """None takes the evaluator's."""
    max_duration_ms: Amount | None = None


class ToolTrajectory(BaseEvaluator):
    """Minimum call counts in any order, or a sequence with or without other calls in between."""

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"]
    minimums: dict[str, Count] = Field(default_factory=dict)
    expected: Annotated[tuple[ExpectedTool, ...], AS_TUPLE] = ()
    args_match: ArgsMatch = "superset"
    shares: SkipJsonSchema[bool] = False
    """Whether `in_order` and `exact` score the share of steps met, not 1 or 0."""
    patterns: SkipJsonSchema[bool] = False
    """Whether names of steps may contain `*` and `?`, whatever their case."""

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        if not has_trace(evidence.transcript):
            # Nothing is known, so a negated check fails, too.
            result = EvaluatorResult(0.0, misses=(NO_TRACE,))
            return invert(result) if self.negate else result
        events = evidence.transcript.events
        if self.mode == "any_order":
            return _any_order(self.minimums, summarize_trace(events).tool_calls_by_name)
        compare = (_SHARES if self.shares else _COMPARISONS)[self.mode]
        return compare(self.expected, pair_calls(events), self._accepts)

    def _accepts(self, step: ExpectedTool, call: Call) -> bool:
        """Return whether a call has a step's tool and arguments."""
        name = call.event.name or ""
        if not (matches_pattern(name, step.tool) if self.patterns else name == step.tool):
            return False
        match = self.args_match if step.args_match is None else step.args_match
        return step.args is None or _args_match(step.args, call_arguments(call.event), match)


Accepts = Callable[[ExpectedTool, Call], bool]


def matches_pattern(text: str, pattern: str) -> bool:
    """Return whether a name or command matches, whatever its case, as in AgentV after 4.42."""
    return fnmatchcase(text.lower(), pattern.lower())


def call_arguments(event: Event) -> Json:
    """Return the arguments of a call as a trace gives them."""
    return {"command": event.command} if event.input is None and event.command is not None else event.input


def _args_match(expected: Mapping[str, Json], actual: Json, match: ArgsMatch) -> bool:
    if match == "ignore":
        return True
    if not isinstance(actual, dict):
        return False
    if match == "exact":
        return are_equal(dict(expected), actual)
    if match == "superset":
        return all(key in actual and are_equal(value, actual[key]) for key, value in expected.items())
    if match == "subset":
        return all(key in expected and are_equal(value, expected[key]) for key, value in actual.items())
    pairs = ((_value_at(expected, path), _value_at(actual, path)) for path in match)
    return all(one is None or are_equal(one, other) for one, other in pairs)


def _value_at(value: Json, path: str) -> Json:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


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


def _in_order(expected: Sequence[ExpectedTool], called: Sequence[Call], accepts: Accepts) -> EvaluatorResult:
    """Score 1.0 if the sequence occurs, with any calls in between, and no call took too long; else 0.0."""
    if not expected:
        return EvaluatorResult(1.0, hits=("No tool sequence specified",))
    hits: list[str] = []
    matched: list[tuple[ExpectedTool, Call]] = []
    start = 0
    for index, step in enumerate(expected):
        position = next((n for n in range(start, len(called)) if accepts(step, called[n])), None)
        if position is None:
            return EvaluatorResult(0.0, tuple(hits), (_out_of_order(expected, called, index, start),))
        hits.append(f"Found {step.tool} at position {position}")
        matched.append((step, called[position]))
        start = position + 1
    return _with_durations(hits, [], matched)


def _out_of_order(expected: Sequence[ExpectedTool], called: Sequence[Call], index: int, start: int) -> str:
    tool, names = expected[index].tool, [_name(call) for call in called]
    order = ", ".join(names) or "none"
    if tool in names[start:]:
        return _other_arguments(expected[index], called[names.index(tool, start)])
    if index == 0:
        return f"Expected {tool}, but it was never called (calls: {order})"
    after = f"Expected {tool} after {expected[index - 1].tool}"
    if tool in names:
        return f"{after}, but it was only called earlier (order of calls: {order})"
    return f"{after}, but it was never called (calls: {order})"


def _exact(expected: Sequence[ExpectedTool], called: Sequence[Call], accepts: Accepts) -> EvaluatorResult:
    """Score 1.0 if the calls equal the sequence and none took too long, else 0.0."""
    return _with_durations(*_compare_positions(expected, called, accepts))


def _compare_positions(
    expected: Sequence[ExpectedTool], called: Sequence[Call], accepts: Accepts
) -> tuple[list[str], list[str], list[tuple[ExpectedTool, Call]]]:
    """Return hits, misses, and each step that its call fits."""
    hits: list[str] = []
    misses: list[str] = []
    matched: list[tuple[ExpectedTool, Call]] = []
    for position, (step, call) in enumerate(zip_longest(expected, called)):
        if step is None:
            misses.append(f"Position {position}: unexpected extra tool call {_name(call)}")
        elif call is not None and accepts(step, call):
            hits.append(f"Position {position}: {step.tool}")
            matched.append((step, call))
        elif call is None or call.event.name != step.tool:
            misses.append(
                f"Position {position}: expected {step.tool}, got {_name(call) if call else 'nothing'}"
            )
        else:
            misses.append(f"Position {position}: {_other_arguments(step, call)}")
    return hits, misses, matched


def _in_order_share(
    expected: Sequence[ExpectedTool], called: Sequence[Call], accepts: Accepts
) -> EvaluatorResult:
    """Score the share of steps found in order; the first call of a step's tool decides about its arguments."""
    hits: list[str] = []
    misses: list[str] = []
    matched: list[tuple[ExpectedTool, Call]] = []
    start = 0
    for step in expected:
        position = next((n for n in range(start, len(called)) if called[n].event.name == step.tool), None)
        start = len(called) if position is None else position + 1
        if position is None:
            misses.append(f"Expected {step.tool}, not found in the remaining calls")
        elif accepts(step, called[position]):
            hits.append(f"Found {step.tool} at position {position}")
            matched.append((step, called[position]))
        else:
            misses.append(f"Position {position}: {_other_arguments(step, called[position])}")
    return _share(hits, misses, matched, len(expected))


def _exact_share(
    expected: Sequence[ExpectedTool], called: Sequence[Call], accepts: Accepts
) -> EvaluatorResult:
    """Score the share of positions that are right, of the longer of both sequences."""
    hits, misses, matched = _compare_positions(expected, called, accepts)
    return _share(hits, misses, matched, max(len(expected), len(called)))


def _superset(expected: Sequence[ExpectedTool], called: Sequence[Call], accepts: Accepts) -> EvaluatorResult:
    """Score the share of steps for which a call is left, in any order; other calls are allowed."""
    left = list(called)
    hits: list[str] = []
    misses: list[str] = []
    for step in expected:
        fitting_call = next((call for call in left if accepts(step, call)), None)
        if fitting_call is None:
            misses.append(f"Expected {step.tool}, but no call of it is left that fits")
        else:
            left.remove(fitting_call)
            hits.append(f"Found {step.tool}")
    return EvaluatorResult(len(hits) / len(expected) if expected else 1.0, tuple(hits), tuple(misses))


def _subset(expected: Sequence[ExpectedTool], called: Sequence[Call], accepts: Accepts) -> EvaluatorResult:
    """Score the share of calls that fit any step; a step may fit several calls."""
    allowed = [any(accepts(step, call) for step in expected) for call in called]
    hits = tuple(f"{_name(call)} is allowed" for call, held in zip(called, allowed, strict=True) if held)
    misses = tuple(
        f"Position {n}: {_name(call)} is not allowed"
        for n, (call, held) in enumerate(zip(called, allowed, strict=True))
        if not held
    )
    return EvaluatorResult(sum(allowed) / len(allowed) if allowed else 1.0, hits, misses)


def _share(
    hits: list[str], misses: list[str], matched: Sequence[tuple[ExpectedTool, Call]], steps: int
) -> EvaluatorResult:
    """Return the share of steps and known durations that are right."""
    met = len(matched)
    timed = _with_durations([], [], matched)
    whole = steps + len(timed.hits) + len(timed.misses)
    score = (met + len(timed.hits)) / whole if whole else 1.0
    return EvaluatorResult(score, (*hits, *timed.hits), (*misses, *timed.misses), timed.reasoning)


def _with_durations(
    hits: list[str], misses: list[str], matched: Sequence[tuple[ExpectedTool, Call]]
) -> EvaluatorResult:
    """Return the result with the durations of matched calls; one that is unknown is said and doesn't count."""
    unknown: list[str] = []
    for step, call in matched:
        if step.max_duration_ms is None:
            continue
        took, most = duration_ms(call), f"{step.max_duration_ms:g}ms"
        if took is None:
            unknown.append(f"The duration of {step.tool} is unknown; its maximum of {most} was not checked.")
        elif took <= step.max_duration_ms:
            hits.append(f"{step.tool} completed in {took:g}ms (max: {most})")
        else:
            misses.append(f"{step.tool} took {took:g}ms (max: {most})")
    return EvaluatorResult(0.0 if misses else 1.0, tuple(hits), tuple(misses), " ".join(unknown))


def duration_ms(call: Call) -> float | None:
    """Return how long a call took, as reported or by the times of call and result; None if unknown."""
    result = call.result
    reported = result.seconds if result and result.seconds is not None else call.event.seconds
    if reported is not None:
        return round(reported * 1000, 3)
    if result is None or call.event.timestamp is None or result.timestamp is None:
        return None
    try:
        took = datetime.fromisoformat(result.timestamp) - datetime.fromisoformat(call.event.timestamp)
    except (TypeError, ValueError):
        # One time has a zone and the other has none.
        return None
    milliseconds = took.total_seconds() * 1000
    return round(milliseconds, 3) if milliseconds >= 0 else None


def _other_arguments(step: ExpectedTool, call: Call) -> str:
    return f"expected {step.tool} with {_short(step.args)}, got {_short(call_arguments(call.event))}"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def _name(call: Call) -> str:
    return call.event.name or "unknown"


Comparison = Callable[[Sequence[ExpectedTool], Sequence[Call], Accepts], EvaluatorResult]
_COMPARISONS: Mapping[str, Comparison] = {
    "in_order": _in_order,
    "exact": _exact,
    "subset": _subset,
    "superset": _superset,
}
_SHARES: Mapping[str, Comparison] = {**_COMPARISONS, "in_order": _in_order_share, "exact": _exact_share}
