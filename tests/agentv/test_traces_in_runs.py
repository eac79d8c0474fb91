"""Test Case Execution of the AgentV specification: traces of a run reach evaluators, warehouse and output."""

from __future__ import annotations

import json

import pytest

from runs.models import Trial
from tests.agentv.eval_folder import cases, put, records, run_folder

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

# fmt: off
TRACE = [
    {"type": "model_step", "timestamp": "2026-01-01T00:00:00Z", "text": "thinking"},
    {"type": "tool_call", "timestamp": "2026-01-01T00:00:01Z", "id": "1", "name": "search", "input": {"q": "a"}},
    {"type": "tool_result", "timestamp": "2026-01-01T00:00:02Z", "id": "1", "output": ["b"]},
    {"type": "tool_call", "timestamp": "2026-01-01T00:00:03Z", "id": "2", "name": "add"},
    {"type": "error", "timestamp": "2026-01-01T00:00:04Z", "id": "2", "text": "no numbers"},
]
# fmt: on
SUMMARY = {
    "eventCount": 5,
    "toolNames": ["add", "search"],
    "toolCallsByName": {"search": 1, "add": 1},
    "errorCount": 1,
}
LOOKS = """import json, sys
given = json.load(sys.stdin)
names = ("candidate_trace", "candidate_trace_summary")
print(json.dumps({"score": 1, "reasoning": json.dumps({name: given[name] for name in names})}))
"""
EVAL = cases(
    "find",
    evaluators=[
        {"name": "looks", "type": "code_judge", "script": "python3 look.py"},
        {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}, {"tool": "add"}]},
    ],
)


def results(folder, **target: object) -> tuple[dict, dict, dict]:
    """Return the record, what the script saw, and what the trajectory evaluator found."""
    put(folder, {"evals/look.py": LOOKS})
    run_folder(folder, EVAL, {"name": "agent", **target})
    (record,) = records()
    looks, trajectory = record["evaluator_results"]
    return record, json.loads(looks["reasoning"]), trajectory


@pytest.mark.parametrize(
    "target",
    [
        {"provider": "mock", "response": "found", "trace": TRACE},
        {
            "provider": "cli",
            "command_template": f"echo '{json.dumps({'text': 'found', 'trace': TRACE})}' > {{OUTPUT_FILE}}",
        },
    ],
    ids=["mock", "cli"],
)
@pytest.mark.spec("agentv", "A trace from the provider reaches evaluators and results")
def test_provider_returns_a_trace(tmp_path, target):
    record, seen, trajectory = results(tmp_path, **target)
    assert record["trace_summary"] == seen["candidate_trace_summary"] == SUMMARY
    assert seen["candidate_trace"] == TRACE
    assert (trajectory["score"], record["score"]) == (1.0, 1.0)
    assert Trial.objects.get().transcript.events == 5


@pytest.mark.spec("agentv", "Without a trace both inputs are null")
def test_provider_does_not_support_traces(tmp_path):
    record, seen, trajectory = results(tmp_path, provider="mock", response="found")
    assert seen == {"candidate_trace": None, "candidate_trace_summary": None}
    assert "trace_summary" not in record and "error" not in record
    assert (trajectory["score"], trajectory["misses"]) == (0.0, ["No trace available for evaluation"])
    assert record["score"] == 0.5


@pytest.mark.spec("agentv", "A trace from the provider reaches evaluators and results")
def test_traces_are_printed_and_dumped_on_request(tmp_path):
    target = {"name": "agent", "provider": "mock", "response": "found", "trace": TRACE}
    words = ("--include-trace", "--dump-traces", str(tmp_path / "dumped"))
    called = run_folder(tmp_path, cases("find"), target, words=words)
    (trial,) = called.document["runs"][0]["trials"]
    assert (trial["trace"], trial["trace_summary"], trial["status"]) == (TRACE, SUMMARY, "pass")
    (dumped,) = (tmp_path / "dumped").rglob("find.0.trace.json")
    assert json.loads(dumped.read_text()) == TRACE
    assert "trace" not in run_folder(tmp_path, cases("find"), target).document["runs"][0]["trials"][0]
