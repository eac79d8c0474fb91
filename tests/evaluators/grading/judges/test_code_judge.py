"""Judges that are scripts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.grading.evaluate import Criteria
from evaluators.grading.evaluator import Case, TrialEvidence
from evaluators.grading.scores import EVALUATORS
from evaluators.model import CommandResult, Score, Transcript
from tests.evaluators.agentv_samples import CASE, Scripts, called, printed, score_of


def run_script(
    result: CommandResult, transcript: Transcript | None = None, **config: Any
) -> tuple[Score, Scripts]:
    place = Scripts(result)
    config = {"type": "code_judge", "script": "python check.py", **config}
    evidence = TrialEvidence(
        transcript or Transcript(), answer="It is 42.", bundle=place, command_env={"A": "b"}
    )
    case = Criteria(**CASE, input_files=("evals/data/a.csv",), guidelines=("docs/x.prompt.md",))
    return EVALUATORS["code_judge"].model_validate(config).evaluate(case, evidence)[0], place


class TestCodeJudge:
    def test_it_takes_score_hits_misses_and_reasoning_from_stdout(self):
        score, _ = run_script(printed({"score": 0.5, "hits": [" h "], "misses": ["m"], "reasoning": "r"}))
        assert score.value == 0.5
        assert (score.detail["hits"], score.detail["misses"], score.detail["reasoning"]) == (
            ["h"],
            ["m"],
            "r",
        )

    @pytest.mark.parametrize(
        ("more", "value"),
        [
            ({}, 0.5),
            ({"score": 0.9}, 0.9),
            ({"checks": []}, 1.0),
            ({"checks": [], "pass": False}, 0.0),
            ({"checks": [{"text": "Ok", "pass": True, "score": 0.25, "reason": ""}]}, 0.25),
        ],
        ids=str,
    )
    def test_it_scores_by_checks_else_by_pass(self, more, value):
        checks = [
            {"text": "Sorted", "pass": True, "reason": "ascending"},
            {"text": "Unique", "pass": False, "reason": "7 twice"},
        ]
        score, _ = run_script(printed({"pass": True, "reason": "half", "checks": checks} | more))
        assert (score.value, score.detail["reasoning"]) == (value, "half")
        if "checks" not in more:
            assert score.detail["hits"] == ["Sorted: ascending"]
            assert score.detail["misses"] == ["Unique: 7 twice"]

    def test_it_gives_the_case_the_answer_and_the_trace_on_stdin(self):
        _, place = run_script(printed({"score": 1}), called("a"))
        given_ = json.loads(place.asked[0]["stdin"])
        assert given_["question"] == "What is six times seven?"
        assert given_["candidate_answer"] == "It is 42."
        assert (given_["expected_outcome"], given_["reference_answer"]) == ("It says 42.", "42")
        assert given_["candidate_trace"] == [{"type": "tool_call", "timestamp": None, "name": "a"}]
        assert given_["candidate_trace_summary"]["toolCallsByName"] == {"a": 1}
        assert given_["input_segments"] == [{"type": "text", "value": "What is six times seven?"}]

    def test_the_trace_is_null_when_there_is_none(self):
        _, place = run_script(printed({"score": 1}))
        given_ = json.loads(place.asked[0]["stdin"])
        assert (given_["candidate_trace"], given_["candidate_trace_summary"]) == (None, None)

    def test_it_runs_in_its_folder_with_paths_from_there(self):
        _, place = run_script(printed({"score": 1}), cwd="evals/it's")
        assert place.asked[0]["command"] == "cd 'evals/it'\"'\"'s' || exit 127\npython check.py"
        assert place.asked[0]["env"] == {"A": "b"}
        given_ = json.loads(place.asked[0]["stdin"])
        assert given_["input_files"] == ["../data/a.csv"]
        assert given_["guideline_paths"] == ["../../docs/x.prompt.md"]

    @pytest.mark.parametrize(
        ("result", "error"),
        [
            (CommandResult(2, "", "boom"), "The judge's script exited with code 2: boom"),
            (CommandResult(2, '{"score": 1}', "boom"), "The judge's script exited with code 2: boom"),
            (CommandResult(1), "The judge's script exited with code 1"),
            (CommandResult(None, timed_out=True), "The judge's script timed out after 60 s."),
            (CommandResult(None, error="No sandbox."), "No sandbox."),
        ],
    )
    def test_a_script_that_fails_is_an_error(self, result, error):
        score, _ = run_script(result)
        assert (score.value, score.error) == (None, error)
        assert score.detail["misses"] == [f"Code evaluator failed: {error}"]

    def test_a_script_that_fails_quietly_and_yet_scores_counts(self):
        assert run_script(CommandResult(1, '{"score": 0.25}'))[0].value == 0.25

    @pytest.mark.parametrize(
        ("result", "value"),
        [
            (CommandResult(0, "all good"), 0.0),
            (printed({"score": "high"}), 0.0),
            (printed({"score": 9}), 1.0),
            (CommandResult(0, 'checking…\n{"score": 0.5}\n'), 0.5),
        ],
    )
    def test_it_clamps_the_score_and_takes_none_for_0(self, result, value):
        assert run_script(result)[0].value == value

    def test_without_a_place_to_run_it_is_an_error(self):
        score = score_of({"type": "code_judge", "script": "x"})
        assert score.error == "Not run: needs a workspace on a worker."

    def test_it_runs_in_the_workspace_without_uploaded_files(self):
        place = Scripts(printed({"score": 1}))
        evaluator = EVALUATORS["code_judge"].model_validate(
            {"type": "code_judge", "script": "x", "cwd": "evals"}
        )
        evaluator.evaluate(Case(), TrialEvidence(Transcript(), workspace=place))
        assert place.asked[0]["command"] == "x"
