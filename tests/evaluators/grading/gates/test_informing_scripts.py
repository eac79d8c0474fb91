from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.grading.gates.base_gate import NOT_RUN
from evaluators.grading.gates.informing_scripts import EvaluatorScript, ScriptResult, score_scripts
from evaluators.json_values import CUT
from evaluators.model import CommandResult, Score
from evaluators.redaction import redact_json
from tests.evaluators.samples import FakeWorkspace, evidence, printed


def run(result: CommandResult) -> Score:
    script = EvaluatorScript(command="run", name="s", timeout_seconds=9)
    (score,) = score_scripts([script], evidence(workspace=FakeWorkspace(results={"run": result})))
    return score


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(printed('{"score": 0.85, "summary": "ok", "metrics": {"n": 1}}'), ScriptResult("s", 0.85, "ok", {"n": 1}), id="all of it"),
        pytest.param(printed("[1]"), ScriptResult("s"), id="no object"),
        pytest.param(printed('{"summary": 3}'), ScriptResult("s"), id="summary that isn't a text"),
        pytest.param(printed("oops\n"), ScriptResult("s", summary="oops", error="Invalid JSON output"), id="no JSON"),
        pytest.param(printed(exit_code=2, stderr="bad\n"), ScriptResult("s", error="Exit code 2: bad"), id="exit code"),
        pytest.param(printed(exit_code=None, timed_out=True), ScriptResult("s", error="Timed out after 9 s"), id="timeout"),
        pytest.param(printed(exit_code=None, error="No shell."), ScriptResult("s", error="No shell."), id="not started"),
    ],
)  # fmt: skip
def test_it_reads_a_scripts_output(result: CommandResult, expected: ScriptResult) -> None:
    score = run(result)
    assert (score.layer, score.name, score.value) == ("scripts", "s", expected.score)
    assert score.detail == {"summary": expected.summary, "metrics": expected.metrics, "error": expected.error}
    assert score.message == (expected.error or expected.summary or "")


@pytest.mark.parametrize(
    ("given", "value"), [("1.5", 1.0), ("-2", 0.0), ('"0.5"', None), ("true", None), ("NaN", None)]
)
def test_an_invalid_score_is_reported(given: str, value: Any) -> None:
    score = run(printed(f'{{"score": {given}}}'))
    assert score.value == value
    assert len(score.detail["warnings"]) == 1


def test_a_script_never_decides() -> None:
    for result in (printed('{"score": 0}'), printed(exit_code=1), printed("no")):
        score = run(result)
        assert (score.passed, score.error) == (None, "")


def test_without_a_workspace_it_is_not_run() -> None:
    (score,) = score_scripts([EvaluatorScript(command="x", name="s")], evidence())
    assert (score.value, score.message) == (None, NOT_RUN)


@pytest.mark.hostile
def test_metrics_that_are_nested_too_deep_are_cut() -> None:
    metrics = '{"n": ' + "[" * 800 + "0" + "]" * 800 + "}"
    score = run(printed(f'{{"score": 1, "metrics": {metrics}}}'))
    assert CUT in json.dumps(redact_json(score.detail))


@pytest.mark.hostile
@pytest.mark.parametrize(("given", "expected"), [("1" + "0" * 400, 1.0), ("-1" + "0" * 400, 0.0)])
def test_an_enormous_score_is_limited(given: str, expected: float) -> None:
    score = run(printed(f'{{"score": {given}}}'))
    assert score.value == expected
    assert len(score.detail["warnings"][0]) < 400


@pytest.mark.hostile
def test_a_deep_score_is_ignored() -> None:
    score = run(printed('{"score": ' + "[" * 900 + "]" * 900 + "}"))
    assert score.value is None
    assert "not a number" in score.detail["warnings"][0]
