"""Scores computed from other scores: AgentV's composite evaluator and the aggregate of all evaluators."""

from __future__ import annotations

from typing import get_args

from evaluators.grading.evaluator import BaseEvaluator
from evaluators.grading.scores.composite_evaluator import Aggregator, Evaluator
from evaluators.model import Kind

__all__ = ["AGGREGATORS", "EVALUATORS", "BaseEvaluator", "Evaluator"]

EVALUATORS: dict[str, type[BaseEvaluator]] = {
    name: kind
    for kind in get_args(get_args(Evaluator)[0])
    for name in get_args(kind.model_fields["type"].annotation)
}
AGGREGATORS: dict[str, type[Kind]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(Aggregator)[0])
}
