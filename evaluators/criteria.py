"""What a scenario asks of a trial, whatever file it was written in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluators.assertions.expect import Expect
from evaluators.evaluator import Case, Message
from evaluators.gates import Gate
from evaluators.gates.informing_scripts import EvaluatorScript
from evaluators.judges.rubric import JudgeCriteria
from evaluators.scores import Evaluator
from evaluators.tool import Tool
from evaluators.values import Value


class CompositeWeights(Value):
    """Weights of the one number that a scenario may ask for; defaults of llm-tool-test."""

    gate_weight: float = 0.35
    judge_weight: float = 0.55
    interaction_weight: float = 0.10


class Criteria(Value):
    """Everything that is asked of a trial."""

    tool: Tool | None = None
    gates: tuple[Gate, ...] = ()
    scripts: tuple[EvaluatorScript, ...] = ()
    judge: JudgeCriteria | None = None
    composite: CompositeWeights | None = None
    expect: Expect | None = None
    """The assertions of an eval case; None where the scenario comes from a format without them."""
    evaluators: tuple[Evaluator, ...] = ()
    """What scores an answer; their weighted mean decides."""
    threshold: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The least score with which a trial passes."""
    question: str = ""
    """What was asked, as a judge reads it; empty for the prompt."""
    expected_outcome: str = ""
    reference_answer: str = ""
    input_messages: tuple[Message, ...] = ()
    expected_messages: tuple[Message, ...] = ()
    input_files: tuple[str, ...] = ()
    """Attachments, as paths among the files that came with the scenario."""
    guidelines: tuple[str, ...] = ()
    """Guideline files, likewise."""

    @property
    def case(self) -> Case:
        """What evaluators need to know of all this."""
        return Case(
            self.question,
            self.expected_outcome,
            self.reference_answer,
            self.input_messages,
            self.expected_messages,
            self.input_files,
            self.guidelines,
        )

    @property
    def checks(self) -> int:
        """How many gates, assertions and evaluators look at a trial."""
        return len(self.gates) + len(self.evaluators) + (self.expect.asserted if self.expect else 0)

    @property
    def asks_model(self) -> bool:
        """Whether a judge is asked: by the rubric, or by an evaluator."""
        wanted = self.judge is not None and self.judge.enabled
        return wanted or any(evaluator.asks_model for evaluator in self.evaluators)
