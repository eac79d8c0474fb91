"""Evaluators that give a score between 0 and 1, and the score they come to (AgentV evaluation)."""

from __future__ import annotations

from typing import get_args

from evaluators.evaluator import BaseEvaluator
from evaluators.scores.composite_evaluator import Evaluator

__all__ = ["EVALUATORS", "BaseEvaluator", "Evaluator"]

EVALUATORS: dict[str, type[BaseEvaluator]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(Evaluator)[0])
}
