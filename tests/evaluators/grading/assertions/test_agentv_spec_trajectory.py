"""One test for each scenario of the AgentV specification on traces, tool calls and aggregation."""

from __future__ import annotations

import pytest

from evaluators.grading.evaluator import TrialEvidence, trace_context
from evaluators.model import Score, Transcript
from evaluators.transcripts.traces import read_trace, summarize_trace
from tests.evaluators.agentv_samples import called, score_of, traced


def trajectory(mode: str, transcript: Transcript | None, **config: object) -> Score:
    return score_of({"type": "tool_trajectory", "mode": mode, **config}, transcript)


def sequence(*tools: str) -> list[dict[str, str]]:
    return [{"tool": tool} for tool in tools]


def messages(transcript: Transcript | None, *tool_calls: dict[str, object]) -> Score:
    expected = [{"role": "assistant", "tool_calls": tool_calls}]
    return score_of({"type": "expected_messages"}, transcript, expected_messages=expected)


class TestTestCaseExecution:
    @pytest.mark.spec("agentv", "A trace from the provider reaches evaluators and results")
    def test_provider_returns_a_trace(self):
        context = trace_context(TrialEvidence(called("a")))
        assert context["candidate_trace"] == [{"type": "tool_call", "timestamp": None, "name": "a"}]
        assert context["candidate_trace_summary"] == {
            "eventCount": 1,
            "toolNames": ["a"],
            "toolCallsByName": {"a": 1},
            "errorCount": 0,
        }

    @pytest.mark.spec("agentv", "Without a trace both inputs are null")
    def test_provider_does_not_support_traces(self):
        assert trace_context(TrialEvidence(Transcript(text="hello", source="transcript"))) == {
            "candidate_trace": None,
            "candidate_trace_summary": None,
        }


class TestTraceDataModel:
    @pytest.mark.spec("agentv", "Fields of an event")
    def test_trace_event_structure(self):
        event = read_trace([{"type": "message", "timestamp": "2026-01-01T00:00:00Z", "text": "hi"}]).events[0]
        assert (event.type, event.timestamp, event.text) == ("message", "2026-01-01T00:00:00Z", "hi")

    @pytest.mark.spec("agentv", "The summary of a trace")
    def test_trace_summary_computation(self):
        calls = [{"type": "tool_call", "name": name} for name in ("searchDocs", "searchDocs", "verify")]
        trace = [event for call in calls for event in (call, {"type": "tool_result"})]
        assert summarize_trace(read_trace(trace).events).as_json() == {
            "eventCount": 6,
            "toolNames": ["searchDocs", "verify"],
            "toolCallsByName": {"searchDocs": 2, "verify": 1},
            "errorCount": 0,
        }


class TestToolTrajectoryEvaluator:
    @pytest.mark.spec("agentv", "Any order: minimum met")
    def test_minimum_calls_met(self):
        score = trajectory("any_order", called(*["semanticSearch"] * 3), minimums={"semanticSearch": 3})
        assert score.value == 1.0
        assert score.detail["hits"] == ["semanticSearch called 3 times (minimum: 3)"]

    @pytest.mark.spec("agentv", "Any order: minimum missed")
    def test_minimum_calls_not_met(self):
        score = trajectory("any_order", called("semanticSearch"), minimums={"semanticSearch": 3})
        assert score.value == 0.0
        assert score.detail["misses"] == ["semanticSearch called 1 time (minimum: 3)"]

    @pytest.mark.spec("agentv", "Any order: share of minimums")
    def test_multiple_minimums_partial_pass(self):
        score = trajectory("any_order", called("toolA", "toolB", "toolA"), minimums={"toolA": 2, "toolB": 2})
        assert score.value == 0.5
        assert score.detail["hits"] == ["toolA called 2 times (minimum: 2)"]
        assert score.detail["misses"] == ["toolB called 1 time (minimum: 2)"]

    @pytest.mark.spec("agentv", "In order, with others in between")
    def test_in_order_sequence(self):
        score = trajectory("in_order", called("A", "X", "B", "Y", "C"), expected=sequence("A", "B", "C"))
        assert score.value == 1.0

    @pytest.mark.spec("agentv", "In order: wrong order")
    def test_in_order_sequence_wrong_order(self):
        score = trajectory("in_order", called("B", "A"), expected=sequence("A", "B"))
        assert score.value == 0.0
        assert score.detail["misses"] == [
            "Expected B after A, but it was only called earlier (order of calls: B, A)"
        ]

    @pytest.mark.spec("agentv", "Exact: the same calls")
    def test_exact_sequence(self):
        score = trajectory("exact", called("A", "B"), expected=sequence("A", "B"))
        assert (score.value, score.detail["misses"]) == (1.0, [])

    @pytest.mark.spec("agentv", "Exact: an extra call")
    def test_exact_sequence_extra_tools(self):
        score = trajectory("exact", called("A", "B", "C"), expected=sequence("A", "B"))
        assert score.value == 0.0
        assert score.detail["misses"] == ["Position 2: unexpected extra tool call C"]

    @pytest.mark.spec("agentv", "Trajectory without a trace")
    def test_no_trace_available(self):
        score = trajectory("any_order", None, minimums={"semanticSearch": 1})
        assert score.value == 0.0
        assert score.detail["misses"] == ["No trace available for evaluation"]

    @pytest.mark.parametrize(
        ("mode", "calls", "expected", "misses"),
        [
            ("in_order", "", "A", ["Expected A, but it was never called (calls: none)"]),
            ("in_order", "A", "A B", ["Expected B after A, but it was never called (calls: A)"]),
            ("in_order", "A", "A A", ["Expected A after A, but it was only called earlier (order of calls: A)"]),
            ("exact", "A", "A B", ["Position 1: expected B, got nothing"]),
            ("exact", "A C", "A B", ["Position 1: expected B, got C"]),
            ("exact", "A", "", ["Position 0: unexpected extra tool call A"]),
        ],
    )  # fmt: skip
    def test_it_explains_every_miss_and_scores_0(self, mode, calls, expected, misses):
        score = trajectory(mode, called(*calls.split()), expected=sequence(*expected.split()))
        assert (score.value, score.detail["misses"]) == (0.0, misses)

    def test_it_scores_1_without_requirements(self):
        assert trajectory("any_order", called("A")).value == 1.0
        assert trajectory("in_order", called("A")).value == 1.0
        assert trajectory("exact", called()).value == 1.0

    def test_it_evaluates_a_trace_without_calls(self):
        score = trajectory("any_order", called(), minimums={"A": 1})
        assert score.detail["misses"] == ["A called 0 times (minimum: 1)"]


SEARCH = {"type": "tool_call", "name": "searchDocs"}


class TestExpectedMessagesToolCallValidation:
    @pytest.mark.spec("agentv", "The call matches")
    def test_tool_calls_match(self):
        actual = {**SEARCH, "input": {"query": "test"}}
        score = messages(traced(actual), {"tool": "searchDocs", "input": {"query": "test"}})
        assert (score.value, score.detail["hits"]) == (1.0, ["tool_calls[0]: searchDocs matched"])

    @pytest.mark.spec("agentv", "Another tool")
    def test_tool_name_mismatch(self):
        score = messages(called("verifyUser"), {"tool": "searchDocs"})
        assert score.value == 0.0
        assert score.detail["misses"] == ["tool_calls[0]: expected searchDocs, got verifyUser"]

    @pytest.mark.spec("agentv", "Another input")
    def test_input_mismatch(self):
        actual = {**SEARCH, "input": {"query": "different query"}}
        score = messages(traced(actual), {"tool": "searchDocs", "input": {"query": "expected query"}})
        assert (score.value, score.detail["misses"]) == (0.0, ["tool_calls[0]: input mismatch"])

    @pytest.mark.spec("agentv", "No input expected")
    def test_input_not_specified_match_tool_name_only(self):
        score = messages(traced({**SEARCH, "input": {"query": "any value"}}), {"tool": "searchDocs"})
        assert (score.value, score.detail["hits"]) == (1.0, ["tool_calls[0]: searchDocs matched"])

    @pytest.mark.spec("agentv", "Some of several calls")
    def test_multiple_tool_calls_partial_match(self):
        score = messages(called("searchDocs", "wrongTool"), {"tool": "searchDocs"}, {"tool": "verifyUser"})
        assert score.value == 0.5
        assert score.detail["hits"] == ["tool_calls[0]: searchDocs matched"]
        assert score.detail["misses"] == ["tool_calls[1]: expected verifyUser, got wrongTool"]

    @pytest.mark.spec("agentv", "Too few calls")
    def test_fewer_actual_calls_than_expected(self):
        score = messages(called("searchDocs"), {"tool": "searchDocs"}, {"tool": "verifyUser"})
        assert score.value == 0.5
        assert score.detail["misses"] == [
            "tool_calls[1]: expected verifyUser, but no more tool calls in trace"
        ]

    @pytest.mark.parametrize("transcript", [None, called()], ids=["no trace", "an empty one"])
    @pytest.mark.spec("agentv", "Expected calls without a trace")
    def test_no_trace_but_expected_messages_has_tool_calls(self, transcript):
        score = messages(transcript, {"tool": "searchDocs"})
        assert (score.value, score.detail["misses"]) == (0.0, ["No trace available to validate tool_calls"])

    @pytest.mark.parametrize(
        ("expected", "actual", "matches"),
        [
            ({"n": 3}, {"n": 3.0}, True),
            ({"n": 3}, {"n": "3"}, False),
            ({"n": True}, {"n": 1}, False),
            ({"a": 1}, {"a": 1, "b": 2}, False),
            ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, True),
        ],
    )
    def test_inputs_are_compared_deeply(self, expected, actual, matches):
        score = messages(traced({**SEARCH, "input": actual}), {"tool": "searchDocs", "input": expected})
        assert score.value == float(matches)

    def test_further_calls_are_free_and_outputs_are_not_compared(self):
        actual = traced({**SEARCH, "output": "x"}, {"type": "tool_call", "name": "more"})
        assert messages(actual, {"tool": "searchDocs", "output": "y"}).value == 1.0

    def test_a_call_without_a_name_is_unknown(self):
        score = messages(traced({"type": "tool_call"}), {"tool": "searchDocs"})
        assert score.detail["misses"] == ["tool_calls[0]: expected searchDocs, got unknown"]

    def test_without_expected_calls_there_is_nothing_to_miss(self):
        assert messages(None).value == 1.0
