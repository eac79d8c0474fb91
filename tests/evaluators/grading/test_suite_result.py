import pytest

from evaluators.grading.assertions import CaseVerdict, Expect
from evaluators.grading.evaluate import Criteria, evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.suite_result import (
    CaseResult,
    CaseTrial,
    Comparison,
    EarlierResult,
    SuiteRun,
    compare_passes,
    suite_result,
    trial_result,
)
from evaluators.model import Score, Transcript

PASSED = CaseTrial(
    "pass", 1.25, CaseVerdict(passed=True, assertions_run=6), ("get_weather",), 142, cost_usd=0.016
)
FAILED = CaseTrial(
    "fail",
    2.1,
    CaseVerdict(
        passed=False,
        error="responseContains: expected 'Tokyo' in response but not found",
        assertions_run=4,
        assertions_skipped=1,
        skipped_tokens=("{{snapshot:prices.current}}",),
    ),
    ("get_forecast",),
    89,
    cost_usd=0.016,
)
DOWN = CaseTrial("error", 0.5, CaseVerdict(passed=False, error="connection refused"))


def case(*trials, id="a", description=""):
    return CaseResult(id, description, trials or (PASSED,))


def suite(*cases, **changes):
    known = {
        "run_id": "r2",
        "timestamp": "2026-01-01T00:00:00Z",
        "tier": "golden",
        "tool_name": "get_weather",
        "agent_endpoint": "http://localhost:3000/chat",
    }
    return SuiteRun(**{**known, "cases": cases, **changes})


def result(*cases, **changes):
    return suite_result(suite(*cases, **changes))


@pytest.mark.spec("tool-forge", "EvalSuiteResult, field by field")
def test_it_is_the_contracts_sample_field_by_field():
    found = result(
        case(id="gs-get-weather-001", description="trigger phrase — direct weather question"),
        case(FAILED, id="gs-get-weather-002", description="trigger phrase — asking about temperature"),
        tool_version="1.0.0",
        description_hash="cdf9a68519a5",
        registry_size=2,
        eval_file_hash="0123456789ab",
        baseline=EarlierResult("r1", {"gs-get-weather-001": False, "gs-get-weather-002": True}),
    )
    assert found == {
        "runId": "r2",
        "timestamp": "2026-01-01T00:00:00Z",
        "tier": "golden",
        "toolName": "get_weather",
        "agentEndpoint": "http://localhost:3000/chat",
        "metadata": {
            "toolVersion": "1.0.0",
            "descriptionHash": "cdf9a68519a5",
            "registrySize": 2,
            "evalFileHash": "0123456789ab",
        },
        "stalenessWarnings": [],
        "cases": [
            {
                "id": "gs-get-weather-001",
                "description": "trigger phrase — direct weather question",
                "passed": True,
                "durationMs": 1250,
                "assertionsRun": 6,
                "assertionsSkipped": 0,
                "details": {"toolsCalled": ["get_weather"], "responseLength": 142, "skippedTokens": []},
            },
            {
                "id": "gs-get-weather-002",
                "description": "trigger phrase — asking about temperature",
                "passed": False,
                "durationMs": 2100,
                "assertionsRun": 4,
                "assertionsSkipped": 1,
                "error": "responseContains: expected 'Tokyo' in response but not found",
                "details": {
                    "toolsCalled": ["get_forecast"],
                    "responseLength": 89,
                    "skippedTokens": ["{{snapshot:prices.current}}"],
                },
            },
        ],
        "summary": {
            "totalCases": 2,
            "passed": 1,
            "failed": 1,
            "skippedAssertions": 1,
            "totalDurationMs": 3350,
            "estimatedCostUsd": 0.032,
        },
        "baselineRunId": "r1",
        "regressions": ["gs-get-weather-002"],
        "newPasses": ["gs-get-weather-001"],
        "added": [],
        "removed": [],
        "notComparable": {},
        "stale": False,
    }


@pytest.mark.spec("tool-forge", "EvalSuiteResult, field by field")
def test_fields_are_in_the_contracts_order():
    contract = (
        "runId timestamp tier toolName agentEndpoint metadata stalenessWarnings cases summary "
        "baselineRunId regressions newPasses"
    )
    assert list(result(case()))[:12] == contract.split()
    fields = "id description passed durationMs assertionsRun assertionsSkipped error details"
    assert list(result(case(FAILED))["cases"][0]) == fields.split()


def test_an_unreachable_endpoint_is_marked_infrastructure():
    (entry,) = result(case(DOWN))["cases"]
    assert (entry["passed"], entry["error"]) == (False, "agent error: connection refused")
    assert entry["details"]["infrastructure"] is True


def test_an_endpoint_that_is_down_is_listed_as_a_regression():
    found = result(case(DOWN), baseline=EarlierResult("r1", {"a": True}))
    assert found["regressions"] == ["a"]


def test_several_trials_have_their_mean_duration_and_are_listed():
    (entry,) = result(case(PASSED, FAILED))["cases"]
    assert (entry["passed"], entry["durationMs"]) == (False, 1675)
    assert entry["error"] == FAILED.verdict.error
    assert [trial["passed"] for trial in entry["details"]["trials"]] == [True, False]
    assert entry["details"]["trials"][1]["error"] == FAILED.verdict.error


@pytest.mark.parametrize(
    ("trials", "passed"),
    [
        ((PASSED, PASSED), True),
        ((PASSED, FAILED), False),
        ((PASSED, DOWN), True),
        ((DOWN, DOWN), False),
        ((DOWN, FAILED), False),
    ],
    ids=["all pass", "one fails", "an error beside a pass", "only errors", "an error beside a failure"],
)
def test_a_case_passed_when_every_trial_without_error_did(trials, passed):
    assert case(*trials).passed is passed


def test_the_first_failed_trial_represents_the_case():
    (entry,) = result(case(DOWN, PASSED, FAILED))["cases"]
    assert entry["error"] == FAILED.verdict.error


def test_details_list_later_failures_and_vacuous_passes():
    (entry,) = result(case(CaseTrial("pass", verdict=CaseVerdict(passed=True, vacuous=True))))["cases"]
    assert entry["details"]["vacuous"] is True
    (entry,) = result(
        case(CaseTrial("fail", verdict=CaseVerdict(passed=False, all_failures=("a: x", "b: y"))))
    )["cases"]
    assert entry["details"]["allFailures"] == ["a: x", "b: y"]


@pytest.mark.parametrize(
    ("trials", "cost"),
    [
        ((PASSED, PASSED), 0.032),
        ((PASSED, CaseTrial("pass")), None),
        ((PASSED, DOWN), 0.016),
        ((DOWN,), None),
    ],
    ids=["known", "one unknown", "an error costs nothing", "only errors"],
)
def test_the_cost_is_the_sum_or_null(trials, cost):
    assert result(case(*trials))["summary"]["estimatedCostUsd"] == cost


def test_it_keeps_staleness():
    found = result(case(), stale=True, staleness_warnings=("w",))
    assert (found["stale"], found["stalenessWarnings"]) == (True, ["w"])


def test_without_a_baseline_nothing_changed():
    found = result(case())
    assert found["baselineRunId"] is None
    assert found["regressions"] == found["newPasses"] == found["added"] == found["removed"] == []


@pytest.mark.spec("tool-forge", "Regressions and new passes against a baseline")
def test_it_compares_by_id_in_the_order_of_the_current_run():
    before = {"c": True, "b": True, "a": False, "gone": True, "same": False}
    after = {"b": False, "a": True, "c": False, "new": False, "same": False}
    assert compare_passes(before, after) == Comparison(("b", "c"), ("a",), ("new",), ("gone",))


def test_a_trial_has_the_result_of_its_verdict():
    expect = Expect(response_contains=("{{seed:x}}", "Tokyo"), max_tokens=1)
    done = evaluate(Criteria(expect=expect), TrialEvidence(Transcript(), answer="Paris"))
    found = trial_result(
        done.outcome, done.scores, tools_called=["a"], answer="Paris", seconds=1.5, cost_usd=0.1
    )
    assert found == CaseTrial(
        "fail",
        1.5,
        CaseVerdict(
            passed=False,
            error="responseContains: expected 'Tokyo' in response but not found",
            failed_assertion="responseContains",
            assertions_run=1,
            assertions_skipped=1,
            skipped_tokens=("{{seed:x}}",),
            all_failures=(
                "responseContains: expected 'Tokyo' in response but not found",
                "maxTokens: 2 tokens (by characters), more than 1",
            ),
            warnings=("responseContains: '{{seed:x}}' was skipped: {{seed:x}} unresolved.",),
        ),
        tools_called=("a",),
        response_length=5,
        cost_usd=0.1,
    )


def test_without_assertions_the_deciding_scores_count():
    scores = [
        Score("interaction", "total_commands", 3.0),
        Score("gates", "file_exists", 1.0, True, "a exists."),
        Score("gates", "script", 0.0, False, "It says no."),
    ]
    found = trial_result("fail", scores)
    assert (found.verdict.error, found.verdict.assertions_run) == ("script: It says no.", 2)
    assert found.verdict.all_failures == ("script: It says no.",)


def test_a_trial_with_an_error_has_a_reason():
    assert trial_result("error", [], error="connection refused").verdict.error == "connection refused"


@pytest.mark.parametrize(
    ("seconds", "milliseconds", "total"),
    [((1.0, 2.0), 1500, 1500), ((1.0, None), 1000, 1000), ((None, None), None, None), ((0.0,), 0, 0)],
)
def test_an_unknown_time_is_null(seconds, milliseconds, total):
    found = result(case(*(CaseTrial("pass", each) for each in seconds)))
    (entry,) = found["cases"]
    assert (entry["durationMs"], found["summary"]["totalDurationMs"]) == (milliseconds, total)
    each = [trial["durationMs"] for trial in entry["details"].get("trials", ())]
    assert each == ([None if one is None else one * 1000 for one in seconds] if len(seconds) > 1 else [])
