"""Rubrics: statements that a model checks."""

from __future__ import annotations

import json

import pytest

from evaluators.model import Score
from tests.evaluators.agentv_samples import Judge, judged

RUBRICS = [
    {"id": "r1", "description": "Says 42", "weight": 3.0},
    {"id": "r2", "description": "Is polite", "required": False},
]


def checks(**satisfied: bool) -> str:
    listed = [{"id": id, "satisfied": value, "reasoning": f"{id} why"} for id, value in satisfied.items()]
    return json.dumps({"checks": listed, "overall_reasoning": "overall"})


class TestRubric:
    def score(self, text: str) -> Score:
        return judged(Judge([text]), type="rubric", rubrics=RUBRICS)

    def test_it_weighs_the_statements_that_are_satisfied(self):
        score = self.score(checks(r1=True, r2=False))
        assert score.value == 0.75
        assert score.detail["hits"] == ["[r1] Says 42: r1 why"]
        assert score.detail["misses"] == ["[r2] Is polite: r2 why"]
        assert (score.detail["reasoning"], score.detail["verdict"]) == ("overall", "borderline")
        assert score.judging is not None
        assert score.judging.criteria == {"r1": 1.0, "r2": 0.0}

    def test_a_required_statement_fails_only_the_verdict(self):
        score = judged(
            Judge([checks(r1=False, r2=True)]),
            type="rubric",
            rubrics=[{**RUBRICS[0], "weight": 0.1}, RUBRICS[1]],
        )
        assert (round(score.value or 0, 2), score.detail["verdict"]) == (0.91, "fail")

    def test_unchecked_statements_are_listed_and_ignored(self):
        score = self.score(checks(r1=True, other=False))
        assert (score.value, score.detail["missing"]) == (1.0, ["r2"])

    @pytest.mark.parametrize("text", ["no JSON", "{}", '{"checks": [{"id": "r1", "satisfied": "yes"}]}'])
    def test_an_answer_without_checks_is_a_judge_failure(self, text):
        score = self.score(text)
        assert (score.value, score.error) == (0.0, "")
        assert (
            score.detail["judge_failure"]
            == "The judge's answer checks none of the statements, so the score is 0."
        )

    def test_the_prompt_lists_the_statements(self):
        judge = Judge([checks(r1=True)])
        judged(judge, type="rubric", rubrics=RUBRICS)
        assert "- [r1] (required) (weight 3): Says 42\n- [r2]: Is polite" in judge.asked[0].user
        assert ">\nIt is 42.\n</data-" in judge.asked[0].user
