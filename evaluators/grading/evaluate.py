"""Run every layer over a trial's evidence, by criteria that don't depend on the file format."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Literal, Protocol

from msgspec import Struct

from evaluators.grading import assertions, gates
from evaluators.grading.assertions.expect import Expect
from evaluators.grading.evaluator import Case, TrialEvidence
from evaluators.grading.gates import Gate, informing_scripts
from evaluators.grading.gates.informing_scripts import EvaluatorScript
from evaluators.grading.judges import rubric_judge
from evaluators.grading.judges.rubric import JudgeCriteria
from evaluators.grading.scores import Evaluator
from evaluators.grading.scores import weighted_score as scoring
from evaluators.model import Amount, Outcome, Score, Share, StrictModel
from evaluators.patterns import pattern_budget
from evaluators.tool_use import interaction
from evaluators.tool_use.tool import Tool


class CompositeWeights(StrictModel):
    """The weights of the composite score; each has llm-tool-test's default."""

    gate_weight: Amount = 0.35
    judge_weight: Amount = 0.55
    interaction_weight: Amount = 0.10


class Checks(StrictModel):
    """What checks a trial, layer by layer."""

    tool: Tool | None = None
    gates: tuple[Gate, ...] = ()
    scripts: tuple[EvaluatorScript, ...] = ()
    judge: JudgeCriteria | None = None
    composite: CompositeWeights | None = None
    expect: Expect | None = None
    """The assertions of an eval case; None in formats without them."""
    evaluators: tuple[Evaluator, ...] = ()
    """AgentV's evaluators; the weighted mean of their scores decides."""
    threshold: Share = 1.0
    """The lowest passing score."""


class Criteria(Case, Checks):
    """Everything a trial is judged by; the fields of the last base come first."""

    protected: tuple[str, ...] | None = None
    """Patterns of the workspace's files that are not the task; None if the scenario doesn't say."""
    git_config: Literal["clean", "keep"] = "clean"
    """Whether Git settings of the agent that execute something are removed before gates."""

    @property
    def checks(self) -> int:
        """The number of gates, assertions and evaluators."""
        return len(self.gates) + len(self.evaluators) + (self.expect.asserted if self.expect else 0)

    @property
    def asks_model(self) -> bool:
        """Whether any judge asks a model."""
        rubric_judge = self.judge is not None and self.judge.enabled
        return rubric_judge or any(evaluator.asks_model for evaluator in self.evaluators)


class Layer(Protocol):
    """A function from evidence to scores. `so_far` are the scores of earlier layers."""

    def __call__(
        self, criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]
    ) -> tuple[Score, ...]: ...


# Layers define the parts of `Criteria`, so they cannot import it: each gets its part.


def interaction_layer(
    criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]
) -> tuple[Score, ...]:
    return tuple(interaction.score_interaction(evidence.interaction))


def gates_layer(criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return gates.score_gates(criteria.gates, evidence)


def assertions_layer(
    criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]
) -> tuple[Score, ...]:
    return assertions.score_assertions(criteria.expect, evidence)


def evaluators_layer(
    criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]
) -> tuple[Score, ...]:
    return scoring.score_evaluators(criteria.evaluators, criteria.threshold, criteria, evidence)


def scripts_layer(
    criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]
) -> tuple[Score, ...]:
    return informing_scripts.score_scripts(criteria.scripts, evidence)


def judge_layer(criteria: Criteria, evidence: TrialEvidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return rubric_judge.score_with_judge(criteria.judge, evidence, so_far)


LAYERS: tuple[Layer, ...] = (
    interaction_layer,
    gates_layer,
    assertions_layer,
    evaluators_layer,
    scripts_layer,
    judge_layer,
)
"""Every layer in order; one that the scenario does not use returns no scores."""


class Evaluation(Struct, frozen=True):
    """The judgement of one trial."""

    outcome: Outcome
    scores: tuple[Score, ...]
    composite: float | None = None
    composite_weights: dict[str, float] = {}
    """The normalized weights of the layers that applied."""
    error: str = ""
    """Why a layer has no result, even if the trial failed anyway."""


def evaluate(criteria: Criteria, evidence: TrialEvidence, layers: Sequence[Layer] = LAYERS) -> Evaluation:
    """Run every layer in order, then compute outcome and composite from the scores."""
    scores: tuple[Score, ...] = ()
    with pattern_budget():
        for layer in layers:
            scores += layer(criteria, evidence, scores)
    decided = decide_outcome(scores)
    number, weights = compute_composite(criteria.composite, scores, decided)
    errors = dict.fromkeys(score.error for score in scores if score.error)
    return Evaluation(decided, scores, number, weights, " ".join(errors))


def decide_outcome(scores: Sequence[Score]) -> Outcome:
    """Return `fail` if any score failed, else `error` if any layer broke, else `pass`."""
    if any(score.passed is False for score in scores):
        return "fail"
    return "error" if any(score.error for score in scores) else "pass"


def compute_composite(
    weighting: CompositeWeights | None, scores: Sequence[Score], decided: Outcome
) -> tuple[float | None, dict[str, float]]:
    """Return the composite score between 0 and 1 and the weights used.

    A layer that does not apply is left out and the other weights are normalized. A layer that broke counts 0
    in a failed trial. A trial with an error has no composite (llm-tool-test evaluation, Composite Scoring).
    """
    if weighting is None or decided == "error":
        return None, {}
    weights = {
        "gates": weighting.gate_weight,
        "judge": weighting.judge_weight,
        "interaction": weighting.interaction_weight,
    }
    counted = [
        score for score in scores if score.layer == "gates" and (score.passed is not None or score.error)
    ]
    values = {
        "gates": fmean(float(score.passed or False) for score in counted) if counted else None,
        "judge": _named_part(scores, "judge", rubric_judge.NAME),
        "interaction": _named_part(scores, "interaction", "first_try_success_rate"),
    }
    total = sum(weights[layer] for layer, value in values.items() if value is not None)
    if total <= 0:
        return None, {}
    used = {layer: weights[layer] / total for layer, value in values.items() if value is not None}
    return sum(weight * min(max(values[layer] or 0.0, 0.0), 1.0) for layer, weight in used.items()), used


def _named_part(scores: Sequence[Score], layer: str, name: str) -> float | None:
    """Return one score of a layer: 0 if it broke, None if it does not apply."""
    for score in scores:
        if score.layer == layer and score.name == name:
            return 0.0 if score.error else score.value
    return None
