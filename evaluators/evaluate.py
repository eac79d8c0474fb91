"""Evidence in, one evaluation out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from evaluators.criteria import Criteria
from evaluators.evidence import Evidence
from evaluators.model import Outcome, Score


class Layer(Protocol):
    """A function from evidence to scores. `so_far` holds the scores of the layers before it."""

    def __call__(self, criteria: Criteria, evidence: Evidence, so_far: tuple[Score, ...]) -> tuple[Score, ...]: ...


class Evaluation(Struct, frozen=True):
    """What the layers say of one trial."""

    outcome: Outcome
    scores: tuple[Score, ...]
    composite: float | None = None
    composite_weights: dict[str, float] = {}
    error: str = ""


def evaluate(criteria: Criteria, evidence: Evidence, layers: Sequence[Layer]) -> Evaluation:
    """Run every layer in order and draw the outcome and the composite from their scores."""
    scores: tuple[Score, ...] = ()
    for layer in layers:
        scores += layer(criteria, evidence, scores)
    raise NotImplementedError
