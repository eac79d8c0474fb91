"""Evaluators put together."""

from __future__ import annotations

import json
from typing import Any

from evaluators.grading.evaluate import Criteria, evaluate
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.scores import EVALUATORS
from evaluators.model import Score
from tests.evaluators.agentv_samples import CASE, Judge, Scripts, called, printed

MEMBERS = [
    {"type": "tool_trajectory", "name": "one", "mode": "any_order", "minimums": {"a": 1}, "weight": 3},
    {"type": "tool_trajectory", "name": "two", "mode": "any_order", "minimums": {"b": 1}},
]


class TestComposite:
    def scores(self, evidence: TrialEvidence, **config: Any) -> tuple[Score, ...]:
        config = {"type": "composite", "name": "all", "evaluators": MEMBERS, **config}
        return EVALUATORS["composite"].model_validate(config).evaluate(Criteria(**CASE), evidence)

    def test_it_is_the_weighted_average_of_its_members(self):
        own, one, two = self.scores(TrialEvidence(called("a")))
        assert own.value == 0.75
        assert own.detail["hits"] == ["[one] a called 1 time (minimum: 1)"]
        assert own.detail["misses"] == ["[two] b called 0 times (minimum: 1)"]
        assert [result["name"] for result in own.detail["evaluator_results"]] == ["one", "two"]
        assert [(one.name, one.value), (two.name, two.value)] == [("all/one", 1.0), ("all/two", 0.0)]

    def test_the_aggregators_weights_go_before_the_members_own(self):
        aggregator = {"type": "weighted_average", "weights": {"one": 1}}
        assert self.scores(TrialEvidence(called("a")), aggregator=aggregator)[0].value == 0.5

    def test_a_script_may_aggregate(self):
        place = Scripts(printed({"score": 0.3}))
        aggregator = {"type": "code_judge", "path": "node sum.js"}
        own = self.scores(TrialEvidence(called("a"), workspace=place), aggregator=aggregator)[0]
        assert own.value == 0.3
        results = json.loads(place.asked[0]["stdin"])["results"]
        assert (results["one"]["score"], results["two"]["verdict"]) == (1.0, "fail")

    def test_a_model_may_aggregate(self):
        judge = Judge(['{"score": 0.6, "reasoning": "so"}'])
        aggregator = {"type": "llm_judge", "prompt": "Sum up {{EVALUATOR_RESULTS_JSON}}"}
        own = self.scores(TrialEvidence(called("a"), complete=judge), aggregator=aggregator)[0]
        assert (own.value, own.detail["reasoning"]) == (0.6, "so")
        assert judge.asked[0].user.startswith("Sum up <data-")
        assert '"one"' in judge.asked[0].user
        assert own.judging is not None

    def test_results_are_sent_without_a_placeholder(self):
        judge = Judge(['{"score": 0.6}'])
        self.scores(TrialEvidence(called("a"), complete=judge), aggregator={"type": "llm_judge"})
        assert "[[ ## evaluator_results ## ]]" in judge.asked[0].user

    def test_a_member_without_a_score_makes_it_an_error(self):
        own, _, judge = self.scores(
            TrialEvidence(called("a")), evaluators=[MEMBERS[0], {"type": "llm_judge"}]
        )
        assert (own.value, own.error) == (None, judge.error)

    def test_it_nests(self):
        inner = {"type": "composite", "name": "inner", "evaluators": MEMBERS}
        found = self.scores(TrialEvidence(called("a")), evaluators=[inner])
        assert [score.name for score in found] == ["all", "all/inner", "all/inner/one", "all/inner/two"]
        assert found[0].value == 0.75

    def test_its_members_do_not_count_twice(self):
        criteria = Criteria(evaluators=({"type": "composite", "evaluators": MEMBERS},), threshold=0.75)
        assert evaluate(criteria, TrialEvidence(called("a"))).outcome == "pass"
