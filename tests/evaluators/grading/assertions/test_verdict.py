import pytest

from evaluators.grading.assertions import ASSERTIONS, Expect, ToolParam, calls_of_transcript
from evaluators.model import Event, Transcript, Usage
from tests.evaluators.grading.assertions.expecting import (
    asserted,
    call_events,
    evaluated,
    judged,
    of_case,
    seen,
)

EVERY_KEY_FAILS = {
    "tools_called": ("a",),
    "tools_acceptable": (("a",),),
    "tools_not_called": ("b",),
    "tool_params": (ToolParam(tool="b", param="p", assertion="exists"),),
    "no_tool_errors": True,
    "stubs": (),
    "response_non_empty": True,
    "response_contains": ("a",),
    "response_contains_any": (("a",),),
    "response_not_contains": (" ",),
    "response_matches": ("a",),
    "max_latency_ms": 1,
    "max_tokens": 0,
}


@pytest.mark.spec("tool-forge", "Their order, and the first failure ends them")
def test_assertions_run_in_the_contracts_order():
    found = judged(seen(" ", "b", duration_ms=50), **EVERY_KEY_FAILS)
    assert [failure.partition(":")[0] for failure in found.all_failures] == list(ASSERTIONS)
    assert (found.failed_assertion, found.assertions_run) == ("toolsCalled", 1)


def test_the_order_is_the_contracts_and_not_the_files():
    found = judged(seen("nope", duration_ms=50), max_latency_ms=1, response_contains=("zzz",))
    assert (found.failed_assertion, found.assertions_run) == ("responseContains", 1)


def test_the_failing_key_counts_as_run():
    found = judged(
        seen("nope", "a"),
        tools_called=("a",),
        stubs=("a",),
        no_tool_errors=True,
        response_non_empty=True,
        response_contains=("zzz",),
        max_latency_ms=1,
    )
    assert (found.failed_assertion, found.assertions_run) == ("responseContains", 4)


def test_it_is_the_contracts_failing_sample():
    found = judged(
        seen("The forecast", "get_forecast"),
        tools_not_called=("get_weather",),
        tools_acceptable=(("get_forecast",),),
        response_non_empty=True,
        response_contains=("{{snapshot:prices.current}}", "Tokyo"),
    )
    assert found.error == "responseContains: expected 'Tokyo' in response but not found"
    assert (found.assertions_run, found.assertions_skipped) == (4, 1)
    assert found.skipped_tokens == ("{{snapshot:prices.current}}",)


@pytest.mark.spec("tool-forge", "Their order, and the first failure ends them")
def test_assertions_after_the_first_failure_do_not_count():
    found = judged(
        seen("x"), response_contains=("no", "{{seed:a}}"), response_not_contains=("{{seed:b}}", "x")
    )
    assert (found.assertions_run, found.assertions_skipped, found.skipped_tokens) == (1, 0, ())
    assert found.all_failures == (
        "responseContains: expected 'no' in response but not found",
        'responseNotContains: found "x" in response',
    )


def test_a_key_with_only_skipped_values_is_not_run():
    found = judged(seen("x"), response_contains=("{{seed:a}}",), response_non_empty=True)
    assert (found.assertions_run, found.assertions_skipped, found.vacuous) == (1, 1, False)


@pytest.mark.parametrize(
    "expect",
    [{}, {"response_contains": ("{{seed:a}}",)}, {"no_tool_errors": False}],
    ids=["nothing expected", "all skipped", "switched off"],
)
def test_a_case_that_checks_nothing_passes_as_vacuous(expect):
    found = judged(seen("x"), **expect)
    assert (found.passed, found.assertions_run, found.vacuous) == (True, 0, True)


def test_the_layer_returns_verdict_and_scores_by_key():
    done = evaluated(
        Expect(tools_called=("a",), response_contains=("{{seed:x}}",), max_tokens=1),
        call_events("a"),
        answer="a long answer",
    )
    assert done.outcome == "fail"
    assert {name: score.passed for name, score in asserted(done).items()} == {
        "verdict": False,
        "toolsCalled": True,
        "responseContains": None,
        "maxTokens": False,
    }


def test_the_verdict_includes_the_suite_results_fields():
    verdict = of_case(evaluated(Expect(response_contains=("Paris",)), answer="in paris"))
    assert verdict.message == "responseContains: expected 'Paris' in response but not found"
    assert verdict.detail["assertions_run"] == 1
    assert verdict.detail["all_failures"] == [verdict.message]
    assert verdict.detail["vacuous"] is False


def test_the_case_hint_is_in_the_message_not_in_the_error():
    done = evaluated(Expect(response_contains=("Paris",)), answer="in paris")
    assert asserted(done)["responseContains"].message.endswith(
        "not found. The response contains 'Paris' in another case."
    )


def test_the_message_of_tools_called_hints_at_the_order():
    done = evaluated(Expect(tools_called=("a", "b")), call_events("b"), call_events("a"))
    assert "in another order" in asserted(done)["toolsCalled"].message


@pytest.mark.parametrize(
    ("usage", "source"), [(Usage(1, 2), "usage"), (None, "characters")], ids=["usage", "characters"]
)
def test_it_records_how_tokens_were_counted(usage, source):
    done = evaluated(Expect(max_tokens=9), answer="abcdefgh", usage=usage)
    assert asserted(done)["maxTokens"].detail["tokens"] == {"count": 2, "source": source}


def test_a_timeout_fails_with_exactly_that_error():
    done = evaluated(Expect(response_non_empty=True), answer="partial", timed_out=True, seconds=60.0)
    assert done.outcome == "fail"
    assert of_case(done).detail["error"] == "timeout"
    assert of_case(done).detail["assertions_run"] == 0
    assert list(asserted(done)) == ["verdict"]


def test_a_scenario_of_another_format_has_no_assertions():
    assert asserted(evaluated(None, timed_out=True)) == {}


def test_latency_is_the_trials_own_seconds_in_milliseconds():
    assert evaluated(Expect(max_latency_ms=2300), seconds=2.3).outcome == "pass"


def test_seed_and_snapshot_come_from_the_evidence():
    expect = Expect(response_contains=("{{seed:a}} {{snapshot:b}}",))
    assert evaluated(expect, answer="1 2", seed={"a": 1}, snapshot={"b": 2}).outcome == "pass"


def test_a_model_that_executes_no_tools_cannot_have_tool_errors():
    expect = Expect(no_tool_errors=True)
    failing = call_events("a", success=False)
    assert evaluated(expect, failing).outcome == "fail"
    done = evaluated(expect, failing, executes_tools=False)
    assert done.outcome == "pass"
    assert asserted(done)["noToolErrors"].passed is None


@pytest.mark.parametrize(
    ("result", "success"),
    [
        pytest.param(Event("tool_result", success=False), False, id="says so"),
        pytest.param(Event("tool_result", exit_code=2), False, id="exit code"),
        pytest.param(Event("tool_result", success=True, exit_code=1), True, id="its word over its exit code"),
        pytest.param(Event("error", id="1"), False, id="an error instead of a result"),
        pytest.param(Event("tool_result"), None, id="does not say"),
    ],
)
@pytest.mark.spec("tool-forge", "A call's name, success, duration and parameters")
def test_a_call_has_the_success_of_its_result(result, success):
    (call,) = calls_of_transcript(
        Transcript(events=(Event("tool_call", id="1", name="a", input={"p": 1}), result))
    )
    assert (call.name, call.params, call.success) == ("a", {"p": 1}, success)


def test_a_call_without_a_result_has_no_success():
    (call,) = calls_of_transcript(Transcript(events=(Event("tool_call", name="a", input="text"),)))
    assert (call.params, call.success) == ({}, None)
