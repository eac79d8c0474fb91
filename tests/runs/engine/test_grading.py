"""Captured evidence in, every layer's scores out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from evaluators.transcripts import PARSERS
from runs.engine.grading.grade import Grading, Parser, grade_in_workspace
from runs.engine.workspace.workspace import own_area
from runs.errors import RequestError
from runs.sandbox.worker_settings import containment
from scenarios.formats.parsed import ScenarioFileError
from tests.greeting import CONTAINS, SUCCEEDS, greeting

SUITE = greeting(CONTAINS, SUCCEEDS)
FILES = Path(__file__).parents[2] / "files"
JUDGED = SUITE + "  judge:\n    enabled: true\n    rubric: rubric.yaml\n    pass_threshold: 0.7\n"
RUBRIC = "criteria:\n  - id: tone\n    weight: 1.0\n    description: Is it kind?\n"


def wanted(text: str = SUITE, *, scenario: str | None = None, **evidence: Any) -> Grading:
    suite = {"name": "greet.yaml", "text": text}
    return Grading.model_validate({"suite": suite, "scenario": scenario, "evidence": evidence})


@pytest.fixture
def here(tmp_path: Path) -> Callable[[Grading], dict[str, Any]]:
    return lambda asked: grade_in_workspace(asked, tmp_path / "work", containment())


def score(graded: dict[str, Any], layer: str, name: str) -> Any:
    return next(each for each in graded["scores"] if (each["layer"], each["name"]) == (layer, name))


def test_it_runs_commands_in_a_workspace_of_the_captured_files(here, tmp_path):
    graded = here(wanted(files={"out.txt": "hello"}))
    assert graded["outcome"] == "pass"
    assert [gate["passed"] for gate in graded["gates"]] == [True, True]
    assert list(own_area(tmp_path / "work").iterdir()) == []


def test_it_fails_for_what_the_files_say(here):
    graded = here(wanted(files={"out.txt": "goodbye"}))
    assert (graded["outcome"], [gate["passed"] for gate in graded["gates"]]) == ("fail", [False, False])


@pytest.mark.parametrize(
    "evidence",
    [
        {"transcript": "$ git status\nok\n$ git push\nerror: Exit code: 1\n"},
        {
            "events": [
                {"type": "tool_call", "id": "1", "name": "bash", "command": "git status"},
                {"type": "tool_result", "id": "1", "exit_code": 0},
                {"type": "tool_call", "id": "2", "name": "bash", "command": "git push"},
                {"type": "tool_result", "id": "2", "exit_code": 1},
            ]
        },
    ],
    ids=["transcript", "events"],
)
def test_it_reads_interaction_as_execution_does(here, evidence):
    found = here(wanted(**evidence))["interaction"]
    assert (found["total_commands"], found["error_count"]) == (2, 1)


def test_output_that_cannot_be_read_is_an_error(here):
    graded = here(wanted(stream={"parser": "trace", "text": "no trace"}))
    assert (graded["outcome"], graded["error_kind"]) == ("error", "transcript")
    assert graded["error"].endswith(".")


@pytest.mark.parametrize("text", ["hello", "goodbye"])
def test_a_session_that_its_service_cut_is_an_error_whatever_its_gates_say(here, text):
    stream = (FILES / "outages/codex/after-401.jsonl").read_text()
    evidence = {"stream": {"parser": "codex", "text": stream}, "files": {"out.txt": text}, "exit_code": 1}
    graded = here(wanted(**evidence))
    assert (graded["outcome"], graded["error_kind"]) == ("error", "endpoint")
    assert [gate["passed"] for gate in graded["gates"]] == [text == "hello"] * 2


def test_it_reads_the_judges_reply_by_the_rubric(here):
    reply = {
        "scores": {"tone": 0.9},
        "weighted_score": 0.9,
        "confidence": 0.8,
        "issues": [],
        "highlights": ["Kind."],
    }
    graded = here(wanted(JUDGED, files={"rubric.yaml": RUBRIC, "out.txt": "hello"}, judge_reply=reply))
    (judging,) = graded["judgings"]
    assert (judging["score"], judging["passed"], judging["positives"]) == (0.9, True, ["Kind."])
    assert score(graded, "judge", "judge")["passed"] is True


def test_it_reports_a_missing_judges_reply(here):
    graded = here(wanted(JUDGED, files={"rubric.yaml": RUBRIC, "out.txt": "hello"}))
    assert graded["outcome"] == "error"
    assert "Add it as `judge_reply`." in graded["error"]


def test_it_takes_tool_calls_by_themselves(here):
    cases = [{"id": "c1", "input": {"message": "Go."}, "expect": {"toolsCalled": ["search"]}}]
    text = json.dumps(cases)
    for name, outcome in (("search", "pass"), ("delete", "fail")):
        asked = wanted(text, tool_calls=[{"name": name, "params": {"q": "x"}}], answer="Done.")
        asked = asked.model_copy(
            update={"suite": asked.suite.model_copy(update={"name": "cases.labeled.json"})}
        )
        assert here(asked)["outcome"] == outcome


def test_it_has_a_trials_fields_without_ids(here):
    given = {"input": 5, "output": 7, "cache_read": 4}
    graded = here(wanted(exit_code=3, seconds=2.5, usage=given))
    assert {"id", "index", "state", "artifacts"}.isdisjoint(graded)
    assert (graded["completed"], graded["exit_code"], graded["seconds"]) == (False, 3, 2.5)
    assert graded["usage"] == {**given, "cache_write": 0, "cache_write_1h": 0, "reasoning": 0}


def test_it_asks_for_a_scenario_that_the_file_has(here):
    with pytest.raises(RequestError, match=r"greet.yaml has no scenario 'nope'. Choose one of: greet."):
        here(wanted(scenario="nope"))


def test_it_lists_every_problem_of_the_file(here):
    with pytest.raises(ScenarioFileError) as refused:
        here(wanted(SUITE.replace("file_contains", "file_contain")))
    assert "file_contains" in str(refused.value)


def test_it_and_its_page_name_every_reader():
    assert set(get_args(Parser)) == set(PARSERS)
    page = Path(__file__).parents[3] / "docs/command-line.md"
    assert f"Parsers: {', '.join(PARSERS)}." in page.read_text()
