"""One test for each scenario of the AgentV specification on how scores become one, and what follows from it."""

from __future__ import annotations

import pytest

from evaluators.grading.evaluate import Criteria, evaluate
from evaluators.grading.evaluator import EvaluatorResult, TrialEvidence
from evaluators.grading.evaluator import verdict_of_score as verdict_of
from evaluators.grading.scores.weighted_score import aggregate
from evaluators.model import Score
from tests.evaluators.agentv_samples import called


def given(name: str, value: float | None, weight: float = 1.0, error: str = "") -> Score:
    return Score("evaluators", name, value, error=error, weight=weight)


class TestScoreAggregation:
    @pytest.mark.spec("agentv", "Mean of scores, and its status")
    def test_multiple_evaluators_aggregation(self):
        score = aggregate([given("A", 1.0), given("B", 0.0)])
        assert (score.value, score.passed, score.detail["status"]) == (0.5, False, "fail")

    def test_a_message_shows_its_side_of_the_threshold(self):
        messages = [aggregate([given("A", value)]).message for value in (0.5, 0.997, 0.9999, 1.0)]
        assert [message.removeprefix("Score ").split(",")[0] for message in messages] == [
            "0.50",
            "0.997",
            "0.9999",
            "1.00",
        ]

    @pytest.mark.parametrize(
        ("scores", "expected"),
        [
            pytest.param([(1.0, 3), (0.0, 1)], 0.75, id="by weight"),
            pytest.param([(1.0, 1), (0.0, 0)], 1.0, id="weight 0 does not count"),
            pytest.param([(0.8, 0), (0.8, 0)], 0.0, id="no weight at all"),
            pytest.param([(1.0, 0.1)] * 3, 1.0, id="no rounding error"),
        ],
    )
    def test_it_is_the_weighted_mean(self, scores, expected):
        score = aggregate([given(str(n), value, weight) for n, (value, weight) in enumerate(scores)])
        assert score.value == expected

    @pytest.mark.parametrize(
        ("value", "threshold", "passed"), [(0.99, 1.0, False), (0.7, 0.7, True), (0.69, 0.7, False)]
    )
    def test_it_passes_from_the_threshold_on(self, value, threshold, passed):
        score = aggregate([given("A", value)], threshold)
        assert (score.passed, score.detail["status"]) == (passed, "pass" if passed else "fail")

    def test_it_has_no_value_if_an_evaluator_has_none(self):
        score = aggregate([given("A", 1.0), given("B", None, error="down")])
        assert (score.value, score.passed, score.detail["status"]) == (None, None, "error")
        assert score.message == "No score: B returned none."

    def test_it_fails_if_a_missing_score_cannot_save_it(self):
        score = aggregate([given("A", 0.5), given("B", None, error="down")])
        assert (score.value, score.passed, score.detail["status"]) == (None, False, "fail")

    def test_it_decides_the_outcome_of_a_trial(self):
        evaluators = (
            {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "A"}]},
            {"type": "tool_trajectory", "name": "other", "mode": "any_order", "minimums": {"B": 1}},
        )
        strict = evaluate(Criteria(evaluators=evaluators), TrialEvidence(called("A")))
        lenient = evaluate(Criteria(evaluators=evaluators, threshold=0.5), TrialEvidence(called("A")))
        assert (strict.outcome, lenient.outcome) == ("fail", "pass")
        scored = [(one.name, one.value, one.passed) for one in lenient.scores if one.layer == "evaluators"]
        assert scored == [("score", 0.5, True), ("tool_trajectory", 1.0, None), ("other", 0.0, None)]

    def test_it_gathers_hits_misses_and_reasons(self):
        one = Score("evaluators", "A", 1.0, detail={"hits": ["h"], "misses": [], "reasoning": "good"})
        two = Score("evaluators", "B", 0.0, detail={"hits": [], "misses": ["m"], "reasoning": "bad"})
        detail = aggregate([one, two]).detail
        assert (detail["hits"], detail["misses"], detail["reasoning"]) == (["h"], ["m"], "A: good | B: bad")

    def test_a_scenario_without_evaluators_has_no_such_score(self):
        found = evaluate(Criteria(), TrialEvidence(called("A"))).scores
        assert all(score.layer != "evaluators" for score in found)


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(1.0, "pass"), (0.8, "pass"), (0.79, "borderline"), (0.6, "borderline"), (0.59, "fail")],
)
def test_every_evaluator_has_its_own_verdict(value, verdict):
    assert verdict_of(EvaluatorResult(value)) == verdict
