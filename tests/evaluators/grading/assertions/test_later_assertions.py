"""Assertions of AgentV after the specification that its published version doesn't have, and what they do without facts."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.grading.evaluate import Criteria, evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import Score, Transcript
from evaluators.transcripts.traces import read_trace

CALLS = [
    {"type": "tool_call", "name": "search", "input": {"q": "a", "page": {"n": 1, "size": 5}}},
    {"type": "tool_call", "name": "bash", "input": {"command": "mt add"}},
    {"type": "message", "role": "assistant", "text": "done"},
]
NOTHING = Transcript()


def score(given: dict[str, Any], answer: str = "", trace: list[dict[str, Any]] | None = CALLS) -> Score:
    criteria = Criteria.model_validate({"evaluators": [{"name": "it", **given}]})
    transcript = NOTHING if trace is None else read_trace(trace)
    found = evaluate(criteria, TrialEvidence(transcript, answer=answer, exit_code=0))
    return next(one for one in found.scores if one.name == "it")


USED = {"type": "trajectory:tool-used"}
ARGS = {"type": "trajectory:tool-args-match", "tool": "search"}
STEPS = {"type": "trajectory:step-count"}
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({**USED, "tools": ["search"]}, 1),
        ({**USED, "tools": ["search", "gone"]}, 0),
        ({**USED, "tools": ["se*"], "minimum": 2}, 0),
        ({**USED, "tools": ["Search"]}, 1),
        ({**USED, "tools": ["gone"], "minimum": 0, "maximum": 0}, 1),
        ({**USED, "tools": ["search"], "negate": True}, 0),
        ({**USED, "tools": ["gone"], "negate": True}, 1),
        ({**ARGS, "args": {"page": {"n": 1}}}, 1),
        ({**ARGS, "args": {"page": {"n": 2}}}, 0),
        ({**ARGS, "args": {"q": "a"}, "mode": "exact"}, 0),
        ({**ARGS, "args": {"q": "a"}, "mode": "exact", "ignore": ["page"]}, 1),
        ({**STEPS, "maximum": 2}, 1),
        ({**STEPS, "maximum": 1}, 0),
        ({**STEPS, "step": "command", "pattern": "mt *", "minimum": 1}, 1),
        ({**STEPS, "step": "command", "pattern": "MT *", "minimum": 1}, 1),
        ({**STEPS, "step": "message", "minimum": 2}, 0),
        ({**STEPS, "step": "any", "minimum": 3, "maximum": 3}, 1),
        ({**STEPS, "step": "any", "pattern": "mt", "minimum": 1}, 1),
        ({**STEPS, "step": "any", "pattern": "gone", "minimum": 1}, 0),
    ],
    ids=str,
)
def test_checks_of_calls(given, value):
    assert score(given).value == value


@pytest.mark.parametrize(
    ("name", "step", "count"),
    [
        ("shell", "tool", 0),
        ("exec_command", "tool", 0),
        ("exec_command", "command", 1),
        ("Bash", "tool", 1),
        ("Bash", "command", 1),
        ("Bash", "any", 2),
    ],
)
def test_commands_among_steps(name, step, count):
    trace = [
        {"type": "message", "role": "user", "text": "Add"},
        {"type": "tool_call", "id": "1", "name": name, "input": {"cmd": "mt add"}},
        {"type": "tool_result", "id": "1", "name": name, "output": "ok"},
    ]
    assert score({**STEPS, "step": step, "minimum": count, "maximum": count}, trace=trace).value == 1


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        {**USED, "tools": ["a"]},
        {**ARGS, "args": {}},
        {**STEPS, "maximum": 9},
        {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "a"}]},
        {"type": "skill-trigger", "skill": "pdf"},
    ],
    ids=str,
)
def test_without_a_trace_no_check_of_calls_passes(given, negate):
    found = score({**given, "negate": negate}, trace=None)
    assert (found.value, found.detail["misses"]) == (0.0, ["No trace available for evaluation"])


@pytest.mark.parametrize(
    ("answer", "value", "miss"),
    [
        ('{"a": 1}', 1, ""),
        ('{"a": "x"}', 0, "$.a: 'x' is not of type 'integer'"),
        ("{}", 0, "$: 'a' is a required property"),
        ("NaN", 0, "The answer is not valid JSON"),
        ("prose", 0, "The answer is not valid JSON"),
    ],
)
def test_a_json_schema(answer, value, miss):
    found = score({"type": "json-schema", "value": SCHEMA}, answer)
    assert (found.value, found.detail["misses"]) == (value, [miss] if miss else [])


def test_a_schema_with_a_missing_reference_is_an_error():
    found = score({"type": "json-schema", "value": {"$ref": "#/$defs/gone"}}, "{}")
    assert found.value is None
    assert "was not checked" in found.error


@pytest.mark.parametrize(
    ("flags", "answer", "value"),
    [("", "a\nb", 0), ("s", "a\nb", 1), ("i", "A-B", 1), ("m", "x\na-b\ny", 1), ("", "x\na-b", 0)],
)
def test_flags_of_a_pattern(flags, answer, value):
    assert score({"type": "regex", "value": "^a.b$", "flags": flags}, answer).value == value


@pytest.mark.parametrize(
    "given",
    [
        {"type": "cost", "budget": 1},
        {"type": "token-usage", "max_total": 1},
        {"type": "execution-metrics", "max_cost_usd": 1, "max_tool_calls": 9, "target_exploration_ratio": 0},
    ],
    ids=str,
)
def test_what_is_unknown_meets_no_limit(given):
    assert score(given, trace=None).value == 0


@pytest.mark.parametrize(
    ("wanted", "actual", "formats", "value"),
    [
        ("2026-01-15", "15-JAN-2026", (), 1),
        ("2026-01-15", "2026-01-15T10:00:00Z", (), 1),
        ("2026-02-01", "01/02/2026", ("DD/MM/YYYY",), 1),
        ("2026-02-01", "01/02/2026", (), 0),
        ("2026-01-15", "someday", (), 0),
    ],
)
def test_dates_of_fields(wanted, actual, formats, value):
    field = {"path": "day", "match": "date", "formats": formats}
    criteria = Criteria.model_validate(
        {
            "evaluators": [{"type": "field-accuracy", "fields": [field]}],
            "expected_messages": [{"role": "assistant", "content": {"day": wanted}}],
        }
    )
    found = evaluate(criteria, TrialEvidence(NOTHING, answer=f'{{"day": "{actual}"}}', exit_code=0))
    assert found.scores[-1].value == value


def test_a_required_assertion_that_fails_blocks_and_says_so():
    evaluators = [
        {"type": "contains", "name": "a", "value": ["a"], "weight": 99},
        {"type": "contains", "name": "b", "value": ["b"], "required": True},
    ]
    criteria = Criteria.model_validate({"evaluators": evaluators, "threshold": 0.8})
    found = evaluate(criteria, TrialEvidence(NOTHING, answer="a", exit_code=0))
    whole = next(one for one in found.scores if one.name == "score")
    assert (whole.value, found.outcome) == (0.0, "fail")
    assert whole.message == "Score 0.00, needs 0.80. b is required: 0.00, needs 0.80."
