"""What leaves evalhub."""

from __future__ import annotations

import io
import json
import zipfile
from xml.etree.ElementTree import fromstring

import pytest

from evaluators.model import Event, Transcript
from runs.exchange.exports import result_formats
from runs.exchange.exports.exports import EXPORTS, export_run
from runs.models import Run, TranscriptRecord
from tests.builders import close, make_project, make_run, make_suite, make_trial, score
from tests.trial_parts import make_judging

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.fixture
def run() -> Run:
    version = make_suite(make_project(), ["sum", "div", "net"])
    run = make_run(version)
    aggregate = score(
        "evaluators", "score", 0.5, False, message="Score 0.50, needs 1.00.",
        detail={"hits": ["4"], "misses": ["five"], "reasoning": "grade: half"},
    )  # fmt: skip
    grade = score(
        "evaluators",
        "grade",
        0.5,
        detail={"type": "llm_judge", "verdict": "fail", "hits": ["4"], "misses": ["five"]},
    )
    trial = make_trial(
        run, "sum", outcome="fail", scores=[aggregate, grade], answer="4 and token: abcdefgh123"
    )
    make_judging(trial, name="grade", content={"user_prompt": "Grade it.", "system_prompt": "You grade."})
    events = (Event("tool_call", name="calc", input={"a": 2}), Event("tool_result", output=4))
    TranscriptRecord.objects.create(
        trial=trial, source="trace", events=2, data=TranscriptRecord.pack(Transcript(events, "trace"))
    )
    make_trial(run, "div", outcome="pass", cost_usd=0.25, detail={"price_source": "litellm m 1/2"})
    make_trial(run, "net", outcome="error", error="HTTP 500 at the endpoint.", error_kind="endpoint")
    return close(run)


def _text(content: bytes) -> str:
    if not content.startswith(b"PK"):
        return content.decode()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


@pytest.mark.parametrize("name", EXPORTS)
def test_every_format_holds_every_scenario_and_no_secret(run: Run, name: str) -> None:
    text = _text(export_run(run.pk, name))
    assert all(key in text for key in ("sum", "div", "net"))
    assert "abcdefgh123" not in text


@pytest.mark.spec("agentv", "Mean of scores, and its status")
def test_json_lines_have_agentvs_names(run: Run) -> None:
    first, second, third = (json.loads(line) for line in export_run(run.pk, "jsonl").splitlines())
    assert (first["eval_id"], first["score"], first["hits"], first["misses"]) == ("sum", 0.5, ["4"], ["five"])
    assert first["trace_summary"] == {
        "eventCount": 2, "toolNames": ["calc"], "toolCallsByName": {"calc": 1}, "errorCount": 0,
    }  # fmt: skip
    (result,) = first["evaluator_results"]
    assert (result["name"], result["type"], result["score"]) == ("grade", "llm_judge", 0.5)
    assert result["evaluator_provider_request"] == {"userPrompt": "Grade it.", "systemPrompt": "You grade."}
    assert [each["status"] for each in (first, second, third)] == ["fail", "pass", "error"]
    assert (second["score"], third["error"]) == (1.0, "HTTP 500 at the endpoint.")
    assert "trace_summary" not in second


def test_a_suite_result_marks_what_is_not_the_agents_fault(run: Run) -> None:
    cases = {case["id"]: case for case in json.loads(export_run(run.pk, "suite-result"))["cases"]}
    assert cases["net"]["error"] == "agent error: HTTP 500 at the endpoint."
    assert cases["net"]["details"]["infrastructure"] is True
    assert cases["div"]["passed"] is True


def test_a_suite_result_names_the_endpoint_of_its_run(run: Run) -> None:
    def endpoint() -> str:
        return str(json.loads(export_run(run.pk, "suite-result"))["agentEndpoint"])

    run.target.definition = {"url": "http://now:1/chat"}
    run.target.save()
    assert endpoint() == "http://now:1/chat"
    for kept, expected in (("http://then:1/chat", "http://then:1/chat"), ("", run.target.name)):
        Run.objects.filter(pk=run.pk).update(fingerprint={"endpoint": kept})
        assert endpoint() == expected


def test_junit_survives_control_characters(run: Run) -> None:
    trial = run.trial_set.get(scenario__key="sum")
    trial.scores[0]["message"] = "bell \x07 and escape \x1b[31m and <tag>"
    trial.save(update_fields=["scores"])
    suite = fromstring(export_run(run.pk, "junit")).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert "<tag>" in suite.find("testcase/failure").text


def test_agentv_rows_have_the_cost_where_it_is_known(run: Run) -> None:
    rows = {row["eval_id"]: row for row in map(json.loads, result_formats.write_jsonl(run))}
    assert (rows["div"]["cost_usd"], rows["div"]["price_source"]) == (0.25, "litellm m 1/2")
    assert "cost_usd" not in rows["net"]
