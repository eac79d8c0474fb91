"""What a trial has to fulfil, independent of the file format."""

from __future__ import annotations

from typing import Literal

from evaluators.grading.assertions.expect import Expect
from evaluators.grading.evaluator import Case
from evaluators.grading.gates import Gate
from evaluators.grading.gates.informing_scripts import EvaluatorScript
from evaluators.grading.judges.rubric import JudgeCriteria
from evaluators.grading.scores import Evaluator
from evaluators.model import Amount, Share, Value
from evaluators.tool_use.tool import Tool


class CompositeWeights(Value):
    """The weights of the composite score; each has llm-tool-test's default."""

    gate_weight: Amount = 0.35
    judge_weight: Amount = 0.55
    interaction_weight: Amount = 0.10


class Checks(Value):
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
