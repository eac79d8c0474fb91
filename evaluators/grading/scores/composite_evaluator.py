"""AgentV's `composite`: combine the scores of several evaluators into one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from evaluators.grading.assertions.answer_checks import AnswerJson, AnswerPattern, AnswerText, FieldAccuracy
from evaluators.grading.assertions.expected_messages import ExpectedMessages
from evaluators.grading.assertions.resource_limits import CostLimit, ExecutionLimits, LatencyLimit, TokenLimit
from evaluators.grading.assertions.tool_checks import SkillTrigger, StepCount, ToolArguments, ToolUsed
from evaluators.grading.assertions.tool_trajectory import ToolTrajectory
from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, TrialEvidence
from evaluators.grading.judges.checklist_judge import ChecklistJudge
from evaluators.grading.judges.code_judge import CodeAggregator, CodeJudge, run_judge_script
from evaluators.grading.judges.llm_judge import (
    SYSTEM,
    LlmJudge,
    ask_judge,
    collect_prompt_values,
    enclose,
    format_section,
    result_of_judging,
)
from evaluators.grading.judges.rubric import hash_of
from evaluators.model import AS_TUPLE, Amount, Json, Kind, Score, Share, TextOrNone, Transcript
from evaluators.statistics.descriptive import weighted_mean

_RESULTS = "{{EVALUATOR_RESULTS_JSON}}"
_TEMPLATE = "Several evaluators graded the same answer. Give one grade for all of their results together."


class WeightedAverage(Kind):
    """The mean of the members by these weights, else by the members' own."""

    type: Literal["weighted_average"] = "weighted_average"
    weights: dict[str, Amount] = Field(default_factory=dict)


class PassedShare(Kind):
    """The share of members whose verdict is pass."""

    type: Literal["threshold"] = "threshold"
    threshold: Share
    """The lowest share with the verdict pass."""


class LlmAggregator(Kind):
    """A model that reads the members' results."""

    type: Literal["llm_judge"] = "llm_judge"
    prompt: TextOrNone = ""
    prompt_file: SkipJsonSchema[str] = ""
    model: str = ""


Aggregator = Annotated[
    WeightedAverage | PassedShare | CodeAggregator | LlmAggregator, Field(discriminator="type")
]


class CompositeEvaluator(BaseEvaluator):
    """An evaluator of evaluators; its score comes first, then its members' as `<name>/<member>`."""

    type: Literal["composite"] = "composite"
    evaluators: Annotated[tuple[Evaluator, ...], Field(min_length=1), AS_TUPLE]
    aggregator: Aggregator = Field(default_factory=WeightedAverage)

    @property
    def needs_workspace(self) -> bool:
        runs_script = isinstance(self.aggregator, CodeAggregator)
        return runs_script or any(member.needs_workspace for member in self.evaluators)

    @property
    def asks_model(self) -> bool:
        return isinstance(self.aggregator, LlmAggregator)

    def evaluate(self, case: Case, evidence: TrialEvidence) -> tuple[Score, ...]:
        results = [member.evaluate(case, evidence) for member in self.evaluators]
        whole = self.score(self._aggregate([scores[0] for scores in results], case, evidence))
        members = [
            msgspec.structs.replace(score, name=f"{self.label}/{score.name}")
            for scores in results
            for score in scores
        ]
        return (whole, *members)

    def averaged(self, members: Sequence[Score]) -> Score | None:
        """Return its score from changed scores of its members; None if a script or a model combines them."""
        if not isinstance(self.aggregator, WeightedAverage | PassedShare):
            return None
        return self.score(self._aggregate(members, Case(), TrialEvidence(Transcript())))

    def _aggregate(self, members: Sequence[Score], case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        errors = dict.fromkeys(score.error for score in members if score.error)
        results = {
            score.name: {"name": score.name, "score": score.value, "weight": score.weight, **score.detail}
            for score in members
        }
        more: dict[str, Json] = {"evaluator_results": list(results.values())}
        if errors:
            return EvaluatorResult(None, error=" ".join(errors), more=more)
        combined = self._ask_combiner(members, results, case, evidence)
        return msgspec.structs.replace(combined, more={**combined.more, **more})

    def _ask_combiner(
        self, members: Sequence[Score], results: Json, case: Case, evidence: TrialEvidence
    ) -> EvaluatorResult:
        aggregator = self.aggregator
        if isinstance(aggregator, CodeAggregator):
            payload = {"results": results}
            return run_judge_script(aggregator.path, aggregator, payload, evidence)
        if isinstance(aggregator, LlmAggregator):
            prompt = _prompt(aggregator, results, case, evidence)
            rubric = hash_of(aggregator.prompt)
            return result_of_judging(ask_judge(prompt, SYSTEM, aggregator.model, evidence, rubric=rubric))
        if isinstance(aggregator, PassedShare):
            return _passed_share(members, aggregator)
        return _mean(members, aggregator)


Evaluator = Annotated[
    ToolTrajectory
    | ToolUsed
    | ToolArguments
    | StepCount
    | SkillTrigger
    | ExpectedMessages
    | AnswerText
    | AnswerPattern
    | AnswerJson
    | FieldAccuracy
    | LatencyLimit
    | CostLimit
    | TokenLimit
    | ExecutionLimits
    | LlmJudge
    | ChecklistJudge
    | CodeJudge
    | CompositeEvaluator,
    Field(discriminator="type"),
]
"""Every kind of evaluator, defined here because a composite contains any of them."""
CompositeEvaluator.model_rebuild()


def _mean(members: Sequence[Score], how: WeightedAverage) -> EvaluatorResult:
    weighed = [(score.value or 0.0, how.weights.get(score.name, score.weight)) for score in members]
    reasons = [f"{score.name}: {score.detail['reasoning']}" for score in members if score.detail["reasoning"]]
    return EvaluatorResult(
        weighted_mean(weighed),
        _prefix_texts(members, "hits"),
        _prefix_texts(members, "misses"),
        "; ".join(reasons),
        failed=any(
            score.detail["type"] == "rubric" and score.detail["verdict"] == "fail" for score in members
        ),
    )


def _passed_share(members: Sequence[Score], how: PassedShare) -> EvaluatorResult:
    passed = sum(score.detail["verdict"] == "pass" for score in members)
    share = passed / len(members)
    return EvaluatorResult(
        share,
        _prefix_texts(members, "hits"),
        _prefix_texts(members, "misses"),
        f"{passed} of {len(members)} passed, needs {how.threshold:.0%}",
        failed=share < how.threshold,
    )


def _prefix_texts(members: Sequence[Score], key: str) -> tuple[str, ...]:
    return tuple(f"[{score.name}] {text}" for score in members for text in score.detail[key])


def _prompt(how: LlmAggregator, results: Json, case: Case, evidence: TrialEvidence) -> str:
    encoded = json.dumps(results, indent=2, ensure_ascii=False)
    if _RESULTS in how.prompt:
        return how.prompt.replace(_RESULTS, enclose(encoded))
    values = collect_prompt_values(case, evidence)
    parts = (how.prompt.strip() or _TEMPLATE, format_section("expected_outcome", values["expected_outcome"]))
    return "\n\n".join((*parts, format_section("evaluator_results", encoded)))


def without_models(evaluators: Iterable[Evaluator]) -> tuple[Evaluator, ...]:
    """Return the evaluators that ask no model, and composites reduced to such members."""
    remaining = (_without_models(evaluator) for evaluator in evaluators)
    return tuple(evaluator for evaluator in remaining if evaluator is not None)


def _without_models(evaluator: Evaluator) -> Evaluator | None:
    if evaluator.asks_model:
        return None
    if not isinstance(evaluator, CompositeEvaluator):
        return evaluator
    members = without_models(evaluator.evaluators)
    return evaluator.model_copy(update={"evaluators": members}) if members else None
