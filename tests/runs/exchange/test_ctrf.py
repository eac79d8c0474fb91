"""Runs as Common Test Reports, checked against the public specification (CTRF 0.1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft7Validator, FormatChecker

from evalhub.teams.access import default_project
from runs.exchange.exports.ctrf import ctrf
from runs.exchange.exports.document import run_document
from runs.exchange.exports.exports import export_run
from runs.models import Run
from tests.builders import close, make_member, make_run, make_suite, make_trial, score
from tests.commands.calling import call
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

pytestmark = pytest.mark.django_db

TEXT, WHOLE, ANY = {"type": "string"}, {"type": "integer"}, {"type": "object"}
NAME = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT}
OBJECTS = {"type": "array", "items": ANY}
STATUSES = ("passed", "failed", "skipped", "pending", "other")


def closed(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties only."""
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


TEST = closed(
    ("name", "status", "duration"),
    id={"type": "string", "format": "uuid"},
    name=NAME,
    status={"enum": list(STATUSES)},
    **dict.fromkeys(("duration", "start", "stop", "line", "retries"), WHOLE),
    suite={**TEXTS, "minItems": 1},
    **dict.fromkeys(("message", "trace", "snippet", "ai", "rawStatus", "type", "filePath"), TEXT),
    **dict.fromkeys(("threadId", "browser", "device", "screenshot"), TEXT),
    **dict.fromkeys(("tags", "stdout", "stderr"), TEXTS),
    **dict.fromkeys(("labels", "parameters", "insights", "extra"), ANY),
    **dict.fromkeys(("retryAttempts", "attachments", "steps"), OBJECTS),
    flaky={"type": "boolean"},
)
COUNTS = ("tests", "passed", "failed", "skipped", "pending", "other", "start", "stop")
SCHEMA = closed(
    ("results", "reportFormat", "specVersion"),
    reportFormat={"const": "CTRF"},
    specVersion={"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"},
    reportId={"type": "string", "format": "uuid"},
    timestamp={"type": "string", "format": "date-time"},
    generatedBy=TEXT,
    **dict.fromkeys(("extra", "insights", "baseline"), ANY),
    results=closed(
        ("tool", "summary", "tests"),
        tool=closed(("name",), name=NAME, version=TEXT, extra=ANY),
        summary=closed(COUNTS, **dict.fromkeys((*COUNTS, "flaky", "suites", "duration"), WHOLE), extra=ANY),
        tests={"type": "array", "items": TEST},
        environment=closed(
            (),
            **dict.fromkeys(("reportName", "appName", "appVersion", "buildId", "buildName"), TEXT),
            **dict.fromkeys(("buildUrl", "repositoryName", "repositoryUrl", "commit", "branchName"), TEXT),
            **dict.fromkeys(("osPlatform", "osRelease", "osVersion", "testEnvironment"), TEXT),
            buildNumber=WHOLE,
            healthy={"type": "boolean"},
            extra=ANY,
        ),
        extra=ANY,
    ),
)
"""The specification's schema of a report, without the definitions of fields that evalhub doesn't write."""


def valid(report: Any) -> dict[str, Any]:
    """Return a report's results once they follow the schema."""
    problems = [
        each.message for each in Draft7Validator(SCHEMA, format_checker=FormatChecker()).iter_errors(report)
    ]
    assert not problems
    results: dict[str, Any] = report["results"]
    return results


@pytest.fixture
def run() -> Run:
    version = make_suite(default_project(), ["steady", "mixed", "lost", "left"], name="tools")
    run = make_run(version, branch="main", commit="abc", tags=["nightly"], tool_version="2.1")
    make_trial(run, "steady", seconds=1.25)
    make_trial(run, "mixed", outcome="fail")
    make_trial(run, "mixed", scores=[score("judge", "judge", 0.8, True)])
    make_trial(run, "lost", outcome="error", error="HTTP 500, token=abcdef123456", seconds=None)
    make_trial(run, "left", outcome="", state="cancelled", seconds=None)
    run.cancelled = 1
    run.save()
    return close(run)


def test_each_outcome_has_its_status(run: Run) -> None:
    results = valid(ctrf([run_document(run.pk)]))
    statuses = {test["name"]: (test["status"], test["rawStatus"]) for test in results["tests"]}
    assert statuses == {
        "steady": ("passed", "pass"),
        "mixed": ("failed", "fail"),
        "mixed #2": ("passed", "pass"),
        "lost": ("other", "error"),
        "left": ("skipped", "cancelled"),
    }
    counts = {name: results["summary"][name] for name in (*COUNTS[:6], "flaky", "suites")}
    assert counts == {
        "tests": 5, "passed": 2, "failed": 1, "skipped": 1, "pending": 0, "other": 1, "flaky": 1, "suites": 1,
    }  # fmt: skip


def test_a_pass_beside_a_failure_is_flaky(run: Run) -> None:
    tests = valid(ctrf([run_document(run.pk)]))["tests"]
    assert [test["name"] for test in tests if test.get("flaky")] == ["mixed #2"]
    assert not any("retries" in test for test in tests)


def test_times_are_milliseconds(run: Run) -> None:
    results = valid(ctrf([run_document(run.pk)]))
    assert run.started
    assert results["summary"]["start"] == pytest.approx(run.started.timestamp() * 1000, abs=1000)
    durations = {test["name"]: test["duration"] for test in results["tests"]}
    assert (durations["steady"], durations["lost"]) == (1250, 0)


def test_it_has_reasons_scores_and_origin_without_secrets(run: Run) -> None:
    results = valid(ctrf([run_document(run.pk)]))
    by_name = {test["name"]: test for test in results["tests"]}
    assert by_name["mixed"]["message"] == "out.txt does not exist.\njudge failed."
    assert by_name["lost"]["message"] == "HTTP 500, token=[REDACTED]"
    assert by_name["mixed #2"]["extra"]["scores"] == [
        {"layer": "judge", "name": "judge", "value": 0.8, "passed": True}
    ]
    assert (by_name["steady"]["suite"], by_name["steady"]["tags"]) == (["tools", "local"], ["nightly"])
    assert results["environment"] == {"branchName": "main", "commit": "abc", "appVersion": "2.1"}


def test_a_test_keeps_its_id_from_run_to_run(run: Run) -> None:
    again = make_run(run.suite_version)
    make_trial(again, "steady")
    first, second = (valid(ctrf([run_document(each.pk)]))["tests"] for each in (run, close(again)))
    assert first[0]["id"] == second[0]["id"]
    assert len({test["id"] for test in first}) == len(first)


def test_several_runs_are_one_report(run: Run) -> None:
    other = make_run(make_suite(default_project(), ["one"], name="more"), branch="side")
    make_trial(other, "one")
    results = valid(ctrf([run_document(run.pk), run_document(close(other).pk)]))
    assert (results["summary"]["tests"], results["summary"]["suites"]) == (6, 2)
    assert results["environment"] == {}
    assert [each["suite"] for each in results["extra"]["runs"]] == ["tools", "more"]


def test_command_and_page_export_the_same(run: Run, tmp_path: Path, client: Client) -> None:
    place = tmp_path / "run.ctrf.json"
    assert call("export_run", str(run.pk), "--format", "ctrf", "--output", str(place)).code == 0
    text = export_run(run.pk, "ctrf")
    assert place.read_bytes() == text
    client.force_login(make_member(run.project, "viewer"))
    answer = client.get(f"/p/{run.project.slug}/runs/{run.pk}/download/ctrf/")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="run-{run.pk}.ctrf.json"'
    assert valid(json.loads(answer.content)) == json.loads(text)["results"]
