"""Results of other programs over REST."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import Run
from tests.builders import close, make_project, make_run, make_suite, make_trial

# fmt: off
RESULT: dict[str, Any] = {
    "runId": "a-1",
    "timestamp": "2026-11-01T10:00:00Z",
    "tier": "golden",
    "toolName": "get_weather",
    "agentEndpoint": "http://localhost:3000/chat",
    "metadata": {"toolVersion": "1.0.0", "descriptionHash": "cdf9a68519a5", "registrySize": 2, "evalFileHash": "0123456789ab"},
    "stalenessWarnings": ["Registry has grown from 1 to 2 tools."],
    "cases": [
        {
            "id": "gs-get-weather-001",
            "description": "trigger phrase",
            "passed": True,
            "durationMs": 1250,
            "assertionsRun": 6,
            "assertionsSkipped": 0,
            "details": {"toolsCalled": ["get_weather"], "responseLength": 0, "skippedTokens": []},
        },
        {
            "id": "gs-get-weather-002",
            "description": "asking about temperature",
            "passed": False,
            "durationMs": 2100,
            "assertionsRun": 4,
            "assertionsSkipped": 1,
            "error": "responseContains: expected 'Tokyo' in response but not found",
            "details": {
                "toolsCalled": ["get_forecast"],
                "responseLength": 0,
                "skippedTokens": ["{{snapshot:prices.current}}"],
            },
        },
    ],
    "summary": {"totalCases": 2, "passed": 1, "failed": 1, "skippedAssertions": 1, "totalDurationMs": 3350, "estimatedCostUsd": None},
    "baselineRunId": None,
    "regressions": [],
    "newPasses": [],
}
# fmt: on


def bring(client: Any, value: Any, name: str = "result.json", **given: Any) -> Any:
    return client.upload("/results", SimpleUploadedFile(name, json.dumps(value).encode()), **given)


def test_what_was_brought_in_is_given_back_field_by_field(api: Any) -> None:
    author = api("author")
    response = bring(author, RESULT)
    assert response.status_code == 201
    (number,) = response.json()["runs"]
    found = author.get(f"/runs/{number}/suite-result").json()
    own = {
        "runId": str(Run.objects.get().uuid),
        "metadata": {**RESULT["metadata"], "evalFileHash": found["metadata"]["evalFileHash"]},
    }
    assert {name: found[name] for name in RESULT} == {**RESULT, **own}
    assert list(found)[: len(RESULT)] == list(RESULT)


def test_the_same_content_again_is_the_same_run(api: Any) -> None:
    author = api("author")
    assert bring(author, RESULT).json() == bring(author, RESULT, "again.json").json()
    assert Run.objects.count() == 1


def test_a_dry_run_shows_what_would_be_stored(api: Any) -> None:
    author = api("author")
    shown = bring(author, RESULT, dry_run=True).json()
    assert shown["runs"] == [] and not Run.objects.exists()
    (run,) = shown["preview"]["runs"]
    assert (run["suite"], run["trials"], run["passed"], run["failed"]) == ("get_weather", 2, 1, 1)
    assert (run["stored"], run["is_new_suite"], run["suite_version"]) == (None, True, None)
    imported = bring(author, RESULT).json()
    assert imported["preview"] is None
    again = bring(author, RESULT, dry_run=True).json()["preview"]
    assert (again["imported"], again["new"]) == (imported["runs"], 0)


def test_a_runner_may_not_bring_results(api: Any) -> None:
    assert bring(api("runner"), RESULT).status_code == 403


BROKEN_CASE = {"id": 7, "details": {"toolsCalled": 3, "skippedTokens": "x"}, "assertionsRun": "many"}


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"cases": 5}, 422),
        ({"cases": [{"description": "without an id"}]}, 422),
        ({"cases": [{"id": "i" * 201}]}, 422),
        ({"cases": [BROKEN_CASE], "metadata": "none", "stalenessWarnings": 3}, 201),
        ({"cases": [{"id": "nul", "passed": True, "description": "a\0b", "durationMs": float("nan")}]}, 201),
        ({"eval_id": "one", "score": "high", "hits": 4, "trace_summary": [], "evaluator_results": {}}, 201),
    ],
    ids=["no cases", "no id", "an endless id", "wrong types", "what no database holds", "a wrong record"],
)
def test_results_that_are_not_as_they_should_be_are_read_or_refused(
    api: Any, value: Any, status: int
) -> None:
    response = bring(api("author"), value)
    assert response.status_code == status, response.content
    if status == 422:
        assert response.json()["id"] == "request/invalid"
        assert not Run.objects.exists()


def test_another_projects_run_has_no_export(api: Any) -> None:
    run = make_run(make_suite(make_project("other")))
    make_trial(run)
    close(run)
    assert api("viewer").get(f"/runs/{run.pk}/suite-result").status_code == 404


@pytest.mark.parametrize("stale", [True, False])
def test_a_stale_run_is_marked_wherever_it_is_given(api: Any, stale: bool) -> None:
    author = api("author")
    (number,) = bring(author, {**RESULT, "stale": stale}).json()["runs"]
    (listed,) = author.get("/runs").json()["items"]
    compared = author.get("/compare", runs=str(number)).json()["runs"]
    whole = author.get(f"/runs/{number}", expand="trials").json()["run"]
    alone = author.get(f"/runs/{number}").json()["run"]
    assert [each["stale"] for each in (listed, whole, alone, *compared)] == [stale] * (3 + len(compared))
    assert author.get(f"/runs/{number}/suite-result").json()["stale"] is stale
