"""Files of AgentV 4.42.4, the version on npm, score as the program itself scored them.

`specimens/4.42.4/` has an eval file written for this test, and the rows of `index.jsonl` that the program wrote for it
with the agent beside it (without the ids of its traces).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluators.grading.evaluate import evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.model import CommandResult, Usage
from evaluators.transcripts.traces import read_trace
from scenarios.formats import parse_files
from tests.agentv.eval_folder import put, the_run
from tests.commands.calling import call

HERE = Path(__file__).parent / "specimens/4.42.4"
ROWS = {row["test_id"]: row for row in map(json.loads, (HERE / "kinds.index.jsonl").read_text().splitlines())}


class Folder:
    """The uploaded files, in which judges' scripts run."""

    def run(self, command: str, **given: Any) -> CommandResult:
        ran = subprocess.run(
            command, shell=True, cwd=HERE, input=given["stdin"], capture_output=True, text=True
        )
        return CommandResult(ran.returncode, ran.stdout, ran.stderr)


def answer_of(text: str, folder: Path) -> dict[str, Any] | None:
    """Return what the agent printed for a prompt; None if it crashed."""
    out = folder / "out.json"
    ran = subprocess.run([sys.executable, HERE / "agent.py", text, out], capture_output=True)
    return None if ran.returncode else json.loads(out.read_text())


def trace_of(output: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of an agent's output as a trace."""
    events: list[dict[str, Any]] = []
    for message in output["output"]:
        for each in message["tool_calls"]:
            events.append(
                {
                    "type": "tool_call",
                    "name": each["tool"],
                    "input": each["input"],
                    "output": each["output"],
                    "durationMs": each["duration_ms"],
                }
            )
        events.append({"type": "message", "role": "assistant", "text": message["content"]})
    return events


@pytest.fixture(scope="module")
def suite():
    names = ("kinds.eval.yaml", "grade.py")
    (found,) = parse_files({name: (HERE / name).read_bytes() for name in names}, name="folder")
    return found


def test_the_suite_has_every_test_and_its_name(suite):
    written = yaml.safe_load((HERE / "kinds.eval.yaml").read_text())
    assert suite.name == written["name"]
    assert [scenario.key for scenario in suite.scenarios] == [test["id"] for test in written["tests"]]


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@pytest.mark.spec("agentv", "4.42.4: scores as the program gives them")
def test_a_test_scores_as_in_the_program(row, suite, tmp_path):
    spec = next(scenario for scenario in suite.scenarios if scenario.key == row["test_id"])
    output = answer_of(spec.prompt, tmp_path)
    if output is None:
        assert row["execution_status"] == "execution_error"
        return
    evidence = TrialEvidence(
        read_trace(trace_of(output)),
        bundle=Folder(),
        answer=output["text"],
        exit_code=0,
        seconds=output["duration_ms"] / 1000,
        usage=Usage(**output["token_usage"]),
        cost_usd=output["cost_usd"],
    )
    found = evaluate(spec.criteria, evidence)
    scores = {score.name: score for score in found.scores if score.layer == "evaluators"}
    whole = scores.pop("score")
    own = [score for name, score in scores.items() if "/" not in name]
    assert [score.value for score in own] == pytest.approx(
        [each["score"] for each in row["scores"]], abs=1e-3
    )
    assert whole.value == pytest.approx(row["score"], abs=1e-3)
    assert found.outcome == {"ok": "pass", "quality_failure": "fail"}[row["execution_status"]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.one_database
def test_a_project_of_the_program_runs_with_the_programs_outcomes(tmp_path):
    names = ("outcomes.eval.yaml", "targets.yaml", "agent.py")
    put(tmp_path, {name: (HERE / name).read_text() for name in names})
    called = call("run_scenarios", str(tmp_path), "--now", "--json")
    run = the_run()
    assert run.error == ""
    assert (called.code, run.suite.name, run.target.name) == (1, "outcomes", "default")
    found = {trial.scenario.key: trial for trial in run.trial_set.select_related("scenario", "transcript")}
    rows = [json.loads(line) for line in (HERE / "results/index.jsonl").read_text().splitlines()]
    words = {"ok": "pass", "quality_failure": "fail", "execution_error": "error"}
    assert {key: trial.outcome for key, trial in found.items()} == {
        row["test_id"]: words[row["execution_status"]] for row in rows
    }
    called_tools = [
        event.name for event in found["right"].transcript.unpack().events if event.type == "tool_call"
    ]
    assert called_tools == ["search", "fetch", "search"]
    assert (found["right"].cost_usd, found["right"].tokens_in) == (0.02, 100)
    assert run.fingerprint["threshold"] == "0.8"
