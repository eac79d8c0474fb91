"""Evaluators that give a score between 0 and 1, and the score they come to (AgentV evaluation)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluators.scoring.base import BaseEvaluator
from evaluators.scoring.code_judge import CodeJudge
from evaluators.scoring.composite import Composite
from evaluators.scoring.expected_messages import ExpectedMessages
from evaluators.scoring.llm_judge import LlmJudge
from evaluators.scoring.rubric import RubricJudge
from evaluators.scoring.tool_trajectory import ToolTrajectory

__all__ = ["EVALUATORS", "BaseEvaluator", "Evaluator"]

Evaluator = Annotated[
    ToolTrajectory | ExpectedMessages | LlmJudge | RubricJudge | CodeJudge | Composite,
    Field(discriminator="type"),
]

Composite.model_rebuild(_types_namespace={"Evaluator": Evaluator})

EVALUATORS: dict[str, type[BaseEvaluator]] = {
    kind.model_fields["type"].default: kind
    for kind in (ToolTrajectory, ExpectedMessages, LlmJudge, RubricJudge, CodeJudge, Composite)
}
