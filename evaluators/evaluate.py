"""Evidence in, one evaluation out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Protocol

from msgspec import Struct

from evaluators import assertions, gates, interaction
from evaluators.criteria import CompositeWeights, Criteria
from evaluators.evidence import Evidence
from evaluators.gates import informing_scripts
from evaluators.judges import rubric_judge
from evaluators.model import Outcome, Score
from evaluators.scores import weighted_score as scoring


class Layer(Protocol):
    """A function from evidence to scores. `so_far` holds the scores of the layers before it."""

    def __call__(
        self, criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]
    ) -> tuple[Score, ...]: ...


# Criteria are made of the layers' own values, so no layer knows the whole of them: each is handed its part.


def interaction_layer(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return tuple(interaction.scores(evidence.interaction))


def gates_layer(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return gates.scores(criteria.gates, evidence)


def assertions_layer(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return assertions.scores(criteria.expect, evidence)


def evaluators_layer(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return scoring.scores(criteria.evaluators, criteria.threshold, criteria.case, evidence)


def scripts_layer(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return informing_scripts.scores(criteria.scripts, evidence)


def judge_layer(criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
    return rubric_judge.scores(criteria.judge, evidence, so_far)


LAYERS: tuple[Layer, ...] = (
    interaction_layer,
    gates_layer,
    assertions_layer,
    evaluators_layer,
    scripts_layer,
    judge_layer,
)
"""Every layer in the order in which they run; one that a scenario does not ask for gives nothing."""


class Evaluation(Struct, frozen=True):
    """What the layers say of one trial."""

    outcome: Outcome
    scores: tuple[Score, ...]
    composite: float | None = None
    composite_weights: dict[str, float] = {}
    """The weights used, normalised; layers that did not apply are left out."""
    error: str = ""
    """Why a layer could not say, also where the trial failed anyway."""


def evaluate(criteria: Criteria, evidence: Evidence, layers: Sequence[Layer] = LAYERS) -> Evaluation:
    """Run every layer in order and draw the outcome and the composite from their scores."""
    scores: tuple[Score, ...] = ()
    for layer in layers:
        scores += layer(criteria, evidence, scores)
    decided = outcome(scores)
    number, weights = composite(criteria.composite, scores, decided)
    errors = dict.fromkeys(score.error for score in scores if score.error)
    return Evaluation(decided, scores, number, weights, " ".join(errors))


def outcome(scores: Sequence[Score]) -> Outcome:
    """Return `fail` where any score decides so, else `error` where any layer broke, else `pass`."""
    if any(score.passed is False for score in scores):
        return "fail"
    return "error" if any(score.error for score in scores) else "pass"


def composite(
    wanted: CompositeWeights | None, scores: Sequence[Score], decided: Outcome
) -> tuple[float | None, dict[str, float]]:
    """Return the one number between 0 and 1 that a scenario asked for, and the weights used.

    A layer that does not apply drops out and the other weights are normalised; one that broke counts 0
    in a trial that failed. A trial that is an error has none (llm-tool-test evaluation, CompositeWeights Scoring).
    """
    if wanted is None or decided == "error":
        return None, {}
    weights = {
        "gates": wanted.gate_weight,
        "judge": wanted.judge_weight,
        "interaction": wanted.interaction_weight,
    }
    values = {
        "gates": _gates_part(scores),
        "judge": _named_part(scores, "judge", rubric_judge.NAME),
        "interaction": _named_part(scores, "interaction", "first_try_success_rate"),
    }
    total = sum(weights[layer] for layer, value in values.items() if value is not None)
    if total <= 0:
        return None, {}
    used = {layer: weights[layer] / total for layer, value in values.items() if value is not None}
    return sum(weight * min(max(values[layer] or 0.0, 0.0), 1.0) for layer, weight in used.items()), used


def _gates_part(scores: Sequence[Score]) -> float | None:
    """Return the share of gates that pass; None without gates that could say."""
    counted = [
        score for score in scores if score.layer == "gates" and (score.passed is not None or score.error)
    ]
    return fmean(float(score.passed or False) for score in counted) if counted else None


def _named_part(scores: Sequence[Score], layer: str, name: str) -> float | None:
    """Return a layer's own number, 0 where it broke, None where it does not apply."""
    for score in scores:
        if score.layer == layer and score.name == name:
            return 0.0 if score.error else score.value
    return None
