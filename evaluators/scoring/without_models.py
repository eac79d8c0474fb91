"""What is left of evaluators where no model may be asked."""

from __future__ import annotations

from collections.abc import Iterable

from evaluators.scoring import Evaluator
from evaluators.scoring.composite import Composite


def without_models(evaluators: Iterable[Evaluator]) -> tuple[Evaluator, ...]:
    """Return the evaluators that ask no model; of a composite the members that ask none, if any."""
    found = (_without_models(evaluator) for evaluator in evaluators)
    return tuple(evaluator for evaluator in found if evaluator is not None)


def _without_models(evaluator: Evaluator) -> Evaluator | None:
    if evaluator.asks_model:
        return None
    if not isinstance(evaluator, Composite):
        return evaluator
    members = without_models(evaluator.evaluators)
    return evaluator.model_copy(update={"evaluators": members}) if members else None
