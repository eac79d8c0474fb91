"""Results of every AgentV version, with counts equal to those that are counted here without evalhub's code.

`specimens/4.42.4/results` is a folder that AgentV 4.42.4 wrote for `outcomes.eval.yaml` beside it; the program itself
said: 2 of 4 at 80 % or more, mean 77 % of three, 1 error.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from runs.exchange.imports.import_results import import_results
from runs.exchange.results_files.importers import pack_folder
from runs.models import Run
from tests.builders import make_project

pytestmark = pytest.mark.django_db
SPECIMENS = Path(__file__).parents[2] / "agentv/specimens/4.42.4"


def imported(content: bytes, name: str) -> Run:
    (run,) = import_results(make_project(), content, name, by=None)
    return run


def counted(text: str) -> tuple[int, int, int]:
    """Count passes, failures and errors by the words of the rows."""
    statuses = re.findall(r'"execution_status": ?"(\w+)"', text)
    return tuple(statuses.count(word) for word in ("ok", "quality_failure", "execution_error"))


def aggregate(scores: list[dict[str, Any]]) -> float:
    """Return a trial's score over all assertions."""
    (found,) = (each["value"] for each in scores if (each["layer"], each["name"]) == ("evaluators", "score"))
    return round(found, 2)


@pytest.mark.parametrize("name", ["kinds.index.jsonl", "results/index.jsonl"])
def test_the_counts_of_an_index_are_those_of_its_rows(name):
    text = (SPECIMENS / name).read_text()
    run = imported(text.encode(), "index.jsonl")
    assert (run.passed, run.failed, run.errors) == counted(text)
    assert run.trials == len(text.splitlines())


def test_a_folder_also_has_answers_costs_and_calls():
    run = imported(pack_folder(SPECIMENS / "results"), "results")
    assert (run.suite.name, run.target.name) == ("outcomes", "default")
    assert (run.passed, run.failed, run.errors) == (2, 1, 1)
    assert (run.tokens_in, run.tokens_out) == (300, 60)
    assert run.cost_usd == pytest.approx(0.06)
    trials = {trial.scenario.key: trial for trial in run.trial_set.select_related("scenario", "transcript")}
    assert [aggregate(trials[key].scores) for key in ("right", "eighty", "half")] == [1.0, 0.8, 0.5]
    assert (trials["right"].answer, trials["right"].seconds) == ("a calls", 0.45)
    called = [event.name for event in trials["right"].transcript.unpack().events if event.type == "tool_call"]
    assert called == ["search", "fetch", "search"]
    assert trials["crash"].error.startswith("agent crashed")


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        ({"eval_id": "a", "score": 0.9}, "fail"),
        ({"eval_id": "a", "score": 1}, "pass"),
        ({"test_id": "a", "score": 0.9}, "pass"),
        ({"test_id": "a", "score": 0.79}, "fail"),
        ({"test_id": "a", "score": 1, "execution_status": "quality_failure"}, "fail"),
        ({"test_id": "a", "score": 0, "error": "down"}, "error"),
    ],
    ids=["first, below", "first, reached", "later, reached", "later, below", "the row says", "an error"],
)
@pytest.mark.spec("agentv", "Results of all versions")
def test_a_row_passes_by_the_rule_of_its_version(row, outcome):
    run = imported(json.dumps(row).encode(), "r.jsonl")
    assert run.trial_set.get().outcome == outcome


ATTEMPTS = {
    "trials": [
        {"attempt": 0, "score": 0.5, "verdict": "fail"},
        {"attempt": 1, "score": 1, "verdict": "pass"},
    ],
    "runs": [{"run": 1, "score": 1, "verdict": "pass"}, {"run": 2, "score": 0.5, "verdict": "fail"}],
    "attempts": [
        {"attempt": 0, "score": 0.5, "execution_status": "quality_failure"},
        {"attempt": 1, "score": 1, "execution_status": "ok"},
        {"attempt": 2, "score": 0, "execution_status": "execution_error", "error": "agent crashed"},
    ],
}
"""Attempts at a case, as files of February, March and July 2026 have them."""


@pytest.mark.parametrize("name", ATTEMPTS)
def test_each_attempt_of_a_row_is_a_trial(name):
    row = {"test_id": "a", "score": 1, "duration_ms": 200, "execution_status": "ok", name: ATTEMPTS[name]}
    run = imported(json.dumps(row).encode(), "r.jsonl")
    assert (run.passed, run.failed, run.errors) == (1, 1, len(ATTEMPTS[name]) - 2)
    assert {trial.outcome: trial.seconds for trial in run.trial_set.all()}["pass"] == 0.2
    assert run.trial_set.get(outcome="fail").seconds is None


def test_rows_of_a_run_bundle_are_found_with_their_files(tmp_path):
    row = {
        "test_id": "a",
        "eval_path": "evals/refunds.eval.yaml",
        "score": 1,
        "execution_status": "ok",
        "answer_path": "a/sample-1/outputs/answer.md",
        "sample_index": 1,
    }
    rows = [row, {**row, "sample_index": 2, "execution_status": "quality_failure", "score": 0}]
    (tmp_path / ".internal").mkdir()
    (tmp_path / ".internal/index.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/index.jsonl").write_text('{"kind": "log"}')
    answer = tmp_path / rows[0]["answer_path"]
    answer.parent.mkdir(parents=True)
    answer.write_text("the answer")
    run = imported(pack_folder(tmp_path), "bundle")
    assert (run.suite.name, run.trials, run.passed, run.failed) == ("refunds", 2, 1, 1)
    assert {trial.answer for trial in run.trial_set.all()} == {"the answer"}
    (warning,) = run.warnings
    assert warning.endswith("other/index.jsonl: left out, because none of its lines is a result.")


def test_assertions_and_members_are_kept():
    member = {"name": "x", "type": "contains", "score": 1, "assertions": [{"text": "has x", "passed": True}]}
    scores = [{"name": "both", "type": "composite", "score": 0.5, "weight": 2, "scores": [member]}]
    run = imported(json.dumps({"test_id": "a", "score": 0.5, "scores": scores}).encode(), "r.jsonl")
    _, both, inner = run.trial_set.get().scores
    assert (both["name"], both["weight"], inner["name"]) == ("both", 2.0, "both/x")
    assert inner["detail"]["hits"] == ["has x"]
