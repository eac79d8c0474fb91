"""What a scenario asks of a trial, whatever file it was written in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluators.expectations.expect import Expect
from evaluators.gates import Gate
from evaluators.scoring import Evaluator
from evaluators.scoring.expected_messages import Message


class Value(BaseModel):
    """Base of everything here: immutable, and a name that does not exist is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Tool(Value):
    """The program whose use is tested (the `target:` section of llm-tool-test)."""

    binary: str = ""
    command_pattern: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    health_check: str = ""
    version_command: str = ""


class EvaluatorScript(Value):
    """A script that informs after the gates and never decides (`scripts.evaluators`)."""

    command: str
    name: str
    timeout_seconds: float = 60.0
    network: bool = False


class Criterion(Value):
    """One line of a rubric."""

    id: str
    weight: float
    description: str = ""


class Rubric(Value):
    """Weighted criteria for a judge; weights are kept as written and normalised when used."""

    name: str = ""
    criteria: tuple[Criterion, ...]
    require_fields: tuple[str, ...] = ()


class JudgeCriteria(Value):
    """When and by what the judge judges (`evaluation.judge`)."""

    enabled: bool = True
    rubric: Rubric
    pass_threshold: float
    model: str = ""
    when: Literal["always", "gates_pass"] = "always"
    judgings: int = 1


class Composite(Value):
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
    composite: Composite | None = None
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
    def checks(self) -> int:
        """How many gates, assertions and evaluators look at a trial."""
        return len(self.gates) + len(self.evaluators) + (self.expect.asserted if self.expect else 0)

    @property
    def asks_model(self) -> bool:
        """Whether a judge is asked: by the rubric, or by an evaluator."""
        wanted = self.judge is not None and self.judge.enabled
        return wanted or any(evaluator.asks_model for evaluator in self.evaluators)
