"""Results of other programs in the warehouse."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalhub.teams.models import Project
from evaluators.grading.suite_summary import suite_summary
from runs.compare.comparison import comparison_of, find_incomparable
from runs.compare.differences import causes_of
from runs.errors import RequestError
from runs.exchange.exports.exports import export_run
from runs.exchange.exports.result_formats import suite_run
from runs.exchange.imports.import_results import import_results
from runs.exchange.results_files.importers import read_results
from runs.launch.selection import find_target
from runs.models import Run, RunMeasure, SearchEntry, Trial
from runs.results.comparability import parts_changed_since
from runs.results.search.trial_search import index_trials
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from scenarios.models import Suite, SuiteVersion
from tests.builders import make_compared, make_project, make_run, make_suite, make_trial

pytestmark = pytest.mark.django_db


def suite_result(**changes: Any) -> dict[str, Any]:
    """Return a small EvalSuiteResult as the contract has it."""
    cases = [
        {"id": "w-1", "description": "direct", "passed": True, "durationMs": 1250, "assertionsRun": 6,
         "assertionsSkipped": 0, "details": {"toolsCalled": ["get_weather"], "responseLength": 142, "skippedTokens": []}},
        {"id": "w-2", "description": "indirect", "passed": False, "durationMs": 2100, "assertionsRun": 4,
         "assertionsSkipped": 1, "error": "responseContains: expected 'Tokyo' in response but not found",
         "details": {"toolsCalled": ["get_forecast"], "responseLength": 89, "skippedTokens": ["{{snapshot:p}}"]}},
        {"id": "w-3", "description": "down", "passed": False, "durationMs": 5, "assertionsRun": 0,
         "assertionsSkipped": 0, "error": "agent error: HTTP 500",
         "details": {"toolsCalled": [], "responseLength": 0, "skippedTokens": [], "infrastructure": True}},
    ]  # fmt: skip
    return {
        "runId": "a-1", "timestamp": "2026-11-01T10:00:00Z", "tier": "golden", "toolName": "get_weather",
        "agentEndpoint": "http://localhost:3000/chat",
        "metadata": {"toolVersion": "1.0.0", "descriptionHash": "abc", "registrySize": 3, "evalFileHash": "def"},
        "stalenessWarnings": ["Registry has grown."], "cases": cases, "summary": {}, "baselineRunId": None,
        "regressions": [], "newPasses": [], **changes,
    }  # fmt: skip


def stored(value: Any, project: Project | None = None, file: str = "result.json") -> tuple[Run, ...]:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return import_results(project or make_project(), content, file, by=None)


@pytest.mark.django_db(transaction=True)
def test_the_same_results_that_are_brought_at_once_are_stored_once() -> None:
    project, content = make_project(), json.dumps(suite_result()).encode()

    def bring(_: int) -> tuple[int, ...]:
        try:
            return tuple(run.pk for run in import_results(project, content, "result.json", by=None))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        brought = set(pool.map(bring, range(4)))
    assert brought == {tuple(Run.objects.values_list("pk", flat=True))}


def test_a_suite_result_becomes_a_closed_run_with_rollups() -> None:
    (run,) = stored(suite_result())
    assert (run.suite.name, run.state, run.outcome, run.trigger) == (
        "get_weather",
        "finished",
        "fail",
        "import",
    )
    assert (run.trials, run.passed, run.failed, run.errors) == (3, 1, 1, 1)
    assert run.warnings == ["Registry has grown."]
    rate = RunMeasure.objects.get(run=run, scenario=None, measure__layer="trial", measure__name="pass")
    assert (rate.n, rate.mean) == (2, 0.5)


def test_a_suite_result_comes_out_as_it_went_in() -> None:
    (run,) = stored(suite_result())
    again = json.loads(export_run(run.pk, "suite-result"))
    for before, after in zip(suite_result()["cases"], again["cases"], strict=True):
        for name in ("id", "passed", "durationMs", "assertionsRun", "assertionsSkipped"):
            assert after[name] == before[name], (before["id"], name)
        assert after.get("error") == before.get("error")
        assert after["details"]["toolsCalled"] == before["details"]["toolsCalled"]
    assert again["stalenessWarnings"] == ["Registry has grown."]


def test_a_baseline_that_was_imported_before_is_found() -> None:
    project = make_project()
    good = suite_result(cases=[{**case, "passed": True, "error": ""} for case in suite_result()["cases"][:2]])
    (before,) = stored(good, project, "before.json")
    # Without the third case, an error: from a third of errors on nothing is compared.
    bad = suite_result(runId="a-2", baselineRunId="a-1", cases=suite_result()["cases"][:2])
    (after,) = stored(bad, project, "after.json")
    assert after.baseline == before
    assert [change.scenario.key for change in after.changes.exclude(scenario=None)] == ["w-2"]


def test_an_import_that_says_more_than_the_one_before_names_what_changed() -> None:
    project = make_project()
    cases = suite_result()["cases"][:2]
    (first,) = stored(suite_result(cases=cases, runId="a-1"), project)
    (second,) = stored(suite_result(cases=cases, runId="a-2", baselineRunId="a-1"), project)
    # They know the tool's version and not the guidance's.
    assert second.baseline == first and second.verdict
    assert second.fingerprint["tool_version"] == "1.0.0"
    (third,) = stored(
        suite_result(
            cases=cases,
            runId="a-3",
            baselineRunId="a-2",
            metadata={"toolVersion": "2.0.0", "descriptionHash": "abc"},
        ),
        project,
    )
    assert [cause.factor for cause in causes_of(third, second)] == ["tool"]


def test_the_same_file_again_is_the_same_run() -> None:
    project = make_project()
    assert stored(suite_result(), project) == stored(suite_result(), project)
    assert Run.objects.count() == 1


def test_the_same_run_in_another_file_is_the_same_run() -> None:
    project = make_project()
    assert stored(suite_result(), project) == stored(suite_result(stale=True), project)
    assert Run.objects.count() == 1


CARRIED = Path(__file__).resolve().parents[2] / "files" / "ci_jobs" / "baseline.json"


def test_a_suite_result_keeps_its_trials() -> None:
    (run,) = stored(CARRIED.read_bytes(), file="baseline.json")
    assert (run.trials, run.passed) == (18, 18)
    assert list(run.trial_set.filter(scenario__key="add-one").values_list("index", "seconds")) == [
        (0, 0.006),
        (1, 0.005),
        (2, 0.005),
    ]


@pytest.mark.parametrize("name", ["suite-result", "jsonl"])
def test_an_export_is_compared_with_later_runs_of_the_same_files(name: str, tmp_path: Path) -> None:
    """Imported into an empty database, before the suite's files."""
    original, project = (
        make_compared(uploaded(make_project()), {"a": "pass", "b": "pass"}, trials=3),
        make_project("other"),
    )
    (copy,) = stored(export_run(original.pk, name), project)
    assert (copy.trials, copy.suite.format, copy.shown_id) == (6, "llm_tool_test", str(original.uuid))
    version = uploaded(project)
    assert version.suite_id == copy.suite_id
    later = make_compared(version, {"a": "fail", "b": "fail"}, trials=3)
    assert later.baseline == copy
    assert comparison_of(later).regressions == ("a", "b")
    assert find_incomparable(copy, later) == {}


@pytest.mark.parametrize("name", ["suite-result", "jsonl"])
def test_a_copy_beside_its_original_is_not_stored(name: str) -> None:
    project = make_project()
    original = make_compared(uploaded(project), {"a": "pass", "b": "pass"}, trials=3)
    assert stored(export_run(original.pk, name), project) == (original,)
    assert Run.objects.count() == 1


def test_results_that_ran_earlier_are_no_newer_baseline() -> None:
    """Lines without a run's id, as older releases exported them."""
    project = make_project()
    version = uploaded(project)
    original = make_compared(version, {"a": "pass", "b": "pass"}, trials=3)
    Run.objects.filter(pk=original.pk).update(started=timezone.now() - timedelta(hours=1))
    lines = [json.loads(line) for line in export_run(original.pk, "jsonl").splitlines()]
    for line in lines:
        del line["run_id"]
        line["timestamp"] = (timezone.now() - timedelta(hours=2)).isoformat()
    (copy,) = stored("\n".join(map(json.dumps, lines)).encode(), project)
    later = make_compared(version, {"a": "pass", "b": "pass"}, trials=3)
    assert copy.pk > original.pk
    assert later.baseline == original


def uploaded(project: Project) -> SuiteVersion:
    """Return the version of a suite of two scenarios as a folder holds it."""
    files = {f"{key}.yaml": f"name: {key}\ntask: {{prompt: Do {key}}}\n".encode() for key in ("a", "b")}
    gates = b"evaluation: {gates: [{type: file_exists, path: out.txt}]}\n"
    bundle = Bundle("notes", {path: text + gates for path, text in files.items()})
    return import_files(bundle, project=project, by=None)[0].version


RECORDS = [
    {"timestamp": "2026-11-01T10:00:00Z", "eval_id": "sum", "dataset": "math", "score": 1, "hits": ["4"], "misses": [],
     "candidate_answer": "4", "target": "clerk", "lm_provider_request": {"question": "2+2?"},
     "evaluator_results": [{"name": "grade", "type": "llm_judge", "score": 1, "verdict": "pass", "hits": [], "misses": []}],
     "trace_summary": {"eventCount": 2, "toolNames": ["calc"], "toolCallsByName": {"calc": 1}, "errorCount": 0}},
    {"timestamp": "2026-11-01T10:00:01Z", "eval_id": "div", "dataset": "math", "score": 0.5, "hits": [], "misses": ["3"],
     "candidate_answer": "2", "target": "clerk"},
    {"timestamp": "2026-11-01T10:00:02Z", "eval_id": "sum", "dataset": "math", "score": 0, "hits": [], "misses": [],
     "candidate_answer": "", "target": "other", "error": "HTTP 500"},
]  # fmt: skip


def as_lines(*more: str) -> bytes:
    return "\n".join([*(json.dumps(record) for record in RECORDS), *more]).encode()


def test_agentv_lines_become_a_run_for_each_target() -> None:
    clerk, other = stored(as_lines(), file="eval.jsonl")
    assert (clerk.target.name, clerk.passed, clerk.failed) == ("clerk", 1, 1)
    assert (other.target.name, other.errors, other.outcome) == ("other", 1, "error")
    grade = clerk.trial_set.get(scenario__key="sum").scores[1]
    assert (grade["name"], grade["value"], grade["detail"]["type"]) == ("grade", 1.0, "llm_judge")


def test_agentv_lines_come_out_with_the_same_names() -> None:
    clerk, _ = stored(as_lines(), file="eval.jsonl")
    first = json.loads(export_run(clerk.pk, "jsonl").splitlines()[0])
    assert {name: first[name] for name in ("eval_id", "dataset", "score", "candidate_answer", "target")} == {
        "eval_id": "sum", "dataset": "math", "score": 1.0, "candidate_answer": "4", "target": "clerk",
    }  # fmt: skip


def test_a_bad_line_is_warned_of_and_the_others_count() -> None:
    clerk, _ = stored(as_lines("{broken", ""), file="eval.jsonl")
    assert clerk.warnings == ["eval.jsonl: skipped lines that are not results: 4."]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "no results found"),
        (b"just text", "no results found"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b'{"cases": []}', "no case in `cases` has an `id`"),
        (b'{"cases": [1, {}]}', "no case in `cases` has an `id`"),
        (b'[{"eval_id": "x"}]', "no results found"),
        (b"[" * 100_000, "no results found"),
    ],
    ids=["empty", "prose", "binary", "no cases", "no ids", "a list", "nested deep"],
)
def test_a_file_without_results_is_refused_and_nothing_stored(content: bytes, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        stored(content, file="file.json")
    assert not Run.objects.exists()


def test_imported_trials_are_searched_like_those_of_runs() -> None:
    lines = [
        {
            "eval_id": "a",
            "target": "agent",
            "score": 1.0,
            "candidate_answer": "Mail ada@example.com the milk.",
        },
        {
            "eval_id": "b",
            "target": "agent",
            "score": 0.0,
            "candidate_answer": "No milk.",
            "error": "Too late.",
        },
    ]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    import_results(make_project(), content, "results.jsonl", by=None)
    written = list(SearchEntry.objects.order_by("trial").values())
    assert [entry["answer"] for entry in written] == ["Mail [REDACTED_EMAIL] the milk.", "No milk."]
    with transaction.atomic():
        index_trials([entry["trial_id"] for entry in written])
    assert list(SearchEntry.objects.order_by("trial").values()) == written


def test_an_imported_target_cannot_run() -> None:
    project = make_project()
    stored(suite_result(), project)
    with pytest.raises(RequestError, match="only in imported results"):
        find_target(project, "http://localhost:3000/chat")


def test_exported_json_lines_import_with_outcomes_and_times() -> None:
    run = make_run(make_suite(make_project(), ("a", "b", "c"), name="Half"))
    score = {"layer": "evaluators", "name": "score", "passed": True, "message": "The threshold is 0.7."}
    make_trial(run, "a", outcome="pass", seconds=1.5, scores=[{**score, "value": 0.8}])
    make_trial(run, "b", outcome="fail", seconds=0.25, scores=[{**score, "value": 0.6, "passed": False}])
    make_trial(run, "c", outcome="error", seconds=2.0, error="It did not answer.")
    (again,) = stored(export_run(run.pk, "jsonl"), make_project("other"), "half.jsonl")
    trials = {trial.scenario.key: trial for trial in again.trial_set.select_related("scenario")}
    found = {key: (trial.outcome, trial.seconds) for key, trial in trials.items()}
    assert found == {"a": ("pass", 1.5), "b": ("fail", 0.25), "c": ("error", 2.0)}
    assert trials["a"].scores[0]["message"] == "Score 0.80, reported as pass."


def test_a_suite_result_took_as_long_as_its_cases_one_after_the_other() -> None:
    (run,) = stored(suite_result())
    took = sum(case["durationMs"] for case in suite_result()["cases"]) / 1000
    assert took > 0
    assert (run.finished - run.started).total_seconds() == pytest.approx(took)


def test_a_time_beyond_all_years_is_none() -> None:
    endless = suite_result()
    endless["cases"][0]["durationMs"] = 1e300
    (run,) = stored(endless)
    assert run.finished == run.started


def test_missing_times_stay_unknown_in_exports() -> None:
    project = make_project()
    suite = make_suite(project, ("w-1", "w-2"), name="golden")
    Suite.objects.filter(pk=suite.suite_id).update(format="tool_forge")
    records = [{"eval_id": key, "dataset": "golden", "score": 1.0} for key in ("w-1", "w-2")]
    lines = "".join(json.dumps(each) + "\n" for each in records)
    (run,) = stored(lines.encode(), project, "results.jsonl")
    assert run.suite_id == suite.suite_id
    report = json.loads(export_run(run.pk, "suite-result"))
    assert [case["durationMs"] for case in report["cases"]] == [None, None]
    assert report["summary"]["totalDurationMs"] is None
    # Maven's schema of JUnit requires a time.
    assert export_run(run.pk, "junit").count(b'time="0.000"') == 3
    assert json.loads(export_run(run.pk, "json"))["run"]["seconds"] is None
    assert "0ms" not in suite_summary(suite_run(run))


def test_promptfoo_output_becomes_a_run_for_each_provider() -> None:
    def row(provider: str, test: int, **fields: Any) -> dict[str, Any]:
        reason = {"pass": fields.get("success"), "score": 1, "reason": "as expected"}
        parts = [{**reason, "assertion": {"type": "contains", "value": "x"}}]
        grading = {**reason, "componentResults": parts}
        return {"provider": {"id": provider}, "testIdx": test, "promptIdx": 0, "prompt": {"raw": "Say x"},
                "response": {"output": "x"}, "latencyMs": 1500, "gradingResult": grading, **fields}  # fmt: skip

    details = {"reasoning": 5, "cacheReadInputTokens": 60, "cacheCreationInputTokens": 0}
    tokens = {"prompt": 100, "completion": 20, "cached": 0, "total": 120, "completionDetails": details}
    rows = [
        row("openai:a", 0, success=True, score=1, failureReason=0, tokenUsage={"total": 120, "cached": 120}),
        row("openai:a", 1, success=False, score=0.5, failureReason=1, cost=0.0123, tokenUsage=tokens),
        row("openai:b", 0, success=False, failureReason=2, error="HTTP 500", gradingResult=None),
    ]
    results = {"version": 3, "timestamp": "2026-11-01T10:00:00Z", "results": rows}
    runs = stored({"evalId": "e-1", "results": results, "config": {"description": "Greets"}})
    assert [(run.suite.name, run.target.name, run.passed, run.failed, run.errors) for run in runs] == [
        ("Greets", "openai:a", 1, 1, 0),
        ("Greets", "openai:b", 0, 0, 1),
    ]
    trial = runs[0].trial_set.get(outcome="fail")
    assert (trial.scenario.key, trial.seconds, trial.answer) == ("test 2", 1.5, "x")
    assert [score["name"] for score in trial.scores] == ["verdict", "contains"]
    assert runs[1].trial_set.get().error == "HTTP 500"
    assert (trial.tokens_in, trial.tokens_out, trial.cost_usd) == (100, 20, 0.0123)
    assert (trial.detail["usage"]["cache_read"], trial.detail["usage"]["reasoning"]) == (60, 5)
    assert (runs[0].tokens_in, runs[0].cost_usd) == (100, 0.0123)
    assert runs[0].trial_set.get(outcome="pass").tokens_in is None


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        ("one.xml", "<promptfoo>\n  <evalId>e</evalId>", "promptfoo's XML"),
        ("one.csv", "Description,name,[plain] Greet {{name}},Status,Score\n", "promptfoo's CSV"),
        ("benchmark.json", '{"metadata": {}, "run_summary": {}}', "a benchmark.json of Agent Skills"),
        ("benchmark.json", '{"metadata": {"eval_file": "e"}, "run_summary": {}}', "a benchmark.json of AgentV"),
        ("s.jsonl", '{"sessionId": "s", "projectHash": "p"}\n', "a Gemini CLI session"),
        ("r.xml", '<?xml version="1.0"?>\n<test-run id="2">', "NUnit's results"),
        ("r.trx", '<TestRun xmlns="x/TeamTest/2010">', "TRX, the results of .NET's tests"),
        ("result.json", '{"trial_name": "a", "verifier_result": {}}', "Harbor's results"),
    ],
)  # fmt: skip
def test_results_of_another_program_are_named(file: str, text: str, what: str) -> None:
    with pytest.raises(RequestError, match=re.escape(f"{file}: not read yet: {what}.")):
        import_results(make_project(), text.encode(), file, by=None)


@pytest.mark.parametrize(
    ("status", "score", "outcome"),
    [("ok", 0.9, "pass"), ("quality_failure", 1.0, "fail"), ("execution_error", 0, "error")],
)
def test_the_status_of_agentv_decides_before_the_score(status: str, score: float, outcome: str) -> None:
    line = {"eval_id": "a", "score": score, "execution_status": status}
    (run,) = import_results(make_project(), json.dumps(line).encode(), "r.jsonl", by=None)
    assert Trial.objects.get(run=run).outcome == outcome


def test_results_in_another_encoding_are_read() -> None:
    (run,) = import_results(make_project(), json.dumps(suite_result()).encode("utf-16"), "r.json", by=None)
    assert run.trials


@pytest.mark.parametrize(
    ("prompt", "read"),
    [pytest.param(100, 100, id="within the prompt"), pytest.param(10, 100, id="apart from it")],
)
def test_promptfoo_counts_the_cache_as_its_provider_does(prompt: int, read: int) -> None:
    details = {"cacheReadInputTokens": 80, "cacheCreationInputTokens": 10}
    tokens = {"prompt": prompt, "completion": 1, "completionDetails": details}
    row = {"provider": {"id": "a"}, "testIdx": 0, "success": True, "score": 1, "tokenUsage": tokens}
    (run,) = stored({"results": {"results": [row]}})
    assert run.tokens_in == read
    assert run.trial_set.get().detail["usage"]["cache_read"] == 80


def test_very_many_empty_lines_are_refused_soon():
    began = time.process_time()
    with pytest.raises(RequestError, match="no results found"):
        read_results("lines.jsonl", b"{}\n" * 500_000)
    assert time.process_time() - began < 1.5


@pytest.mark.parametrize("executed", [False, True], ids=["imported", "executed"])
def test_many_runs_are_compared_with_an_imported_one_in_as_few_queries_as_one(executed: bool) -> None:
    project = make_project()
    newest, *earlier = (stored(suite_result(runId=f"a-{n}"), project)[0] for n in range(6))
    if executed:
        earlier = [make_run(newest.suite_version) for _ in earlier]
    asked = []
    for runs in (earlier[:1], earlier):
        fresh = list(Run.objects.filter(pk__in=[each.pk for each in runs]))
        with CaptureQueriesContext(connection) as queries:
            parts_changed_since(newest, fresh)
        asked.append(len(queries))
    assert asked[0] == asked[1] > 0
