"""The models of AgentV's eval files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from evaluators.model import Json
from scenarios.formats.validation import Mirror

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Key = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]


def _on_or_off(value: Json) -> Json:
    """Convert `on` and `off`, which YAML 1.2 reads as text."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


def _one_line(value: Json) -> Json:
    """Join a command that is a list of words."""
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return value


Command = Annotated[Text, BeforeValidator(_one_line)]


_ASSERTIONS = dict.fromkeys(("assert", "assertions"), "Write 'evaluators:'.")


class Execution(Mirror):
    """Execution settings of a suite or case; a case's fields override its suite's."""

    decisive: ClassVar[Mapping[str, str]] = _ASSERTIONS

    target: str | None = None
    evaluators: list[Any] | None = None
    threshold: Share | None = None
    expected_messages: Annotated[bool, BeforeValidator(_on_or_off)] | None = None


class EvalFile(Mirror):
    """A file without its cases, or the sidecar of a JSONL dataset."""

    decisive: ClassVar[Mapping[str, str]] = _ASSERTIONS

    schema_: str | None = Field(default=None, alias="$schema")
    description: str | None = None
    dataset: Text | None = None
    target: str | None = None
    evaluator: str | None = None
    execution: Execution | None = None


class ToolCall(Mirror):
    tool: Text
    input: Any = None
    output: Any = None


class MessageFile(Mirror):
    role: Literal["system", "user", "assistant", "tool"]
    content: Any = None
    tool_calls: list[ToolCall] | None = None


class EvalCaseFile(Mirror):
    """One eval case."""

    decisive: ClassVar[Mapping[str, str]] = {
        **_ASSERTIONS,
        "input": "AgentV 2.6 or later has it; write 'input_messages:'.",
        "criteria": "Write 'expected_outcome:'.",
        "expected_output": "Write 'expected_messages:'.",
    }

    id: Key
    expected_outcome: str | None = Field(
        default=None, validation_alias=AliasChoices("expected_outcome", "outcome")
    )
    conversation_id: str | None = None
    note: str | None = None
    input_messages: Annotated[list[MessageFile], Field(min_length=1)]
    expected_messages: list[MessageFile] | None = None
    evaluator: str | None = None
    rubrics: list[Any] | None = None
    evaluators: list[Any] | None = None
    execution: Execution | None = None


class RubricItemFile(Mirror):
    decisive: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("min_score", "required_min_score", "score_ranges"),
        "Split it into statements that are satisfied or not.",
    )

    id: Text
    description: Text
    weight: Weight = 1.0
    required: bool = True


class EvaluatorFile(Mirror):
    """The fields of every evaluator."""

    decisive: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("required", "min_score"), "Remove it; 'threshold' in 'execution' sets the passing score."
        ),
        "negate": "Remove it and write the opposite as a statement of a rubric.",
    }

    type: str
    name: Key | None = None
    weight: Weight = 1.0


class LlmJudgeFile(EvaluatorFile):
    prompt: Text | None = None
    model: str | None = None
    rubrics: list[Any] | None = None
    include_trace: bool = False


class RubricJudgeFile(EvaluatorFile):
    rubrics: Annotated[list[Any], Field(min_length=1)]
    model: str | None = None
    include_trace: bool = False


class CodeJudgeFile(EvaluatorFile):
    script: Command
    cwd: str | None = None
    timeout_seconds: Seconds = 60.0
    network: bool = False


def _any_args(value: Json) -> Json:
    """Read `args: any` as no condition."""
    return None if value == "any" else value


def _rule(value: Json) -> Json:
    """Return a rule of `args_match`, a list of arguments as a tuple."""
    if value in ("superset", "subset", "exact", "ignore"):
        return value
    if isinstance(value, list) and value and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    raise ValueError("This must be superset, subset, exact or ignore, or a list of names of arguments")


Rule = Annotated[Any, BeforeValidator(_rule)]


class ExpectedToolFile(Mirror):
    decisive: ClassVar[Mapping[str, str]] = {
        "input": "Write 'args:'.",
        "output": "Remove it: outputs are not compared.",
    }

    tool: Text
    args: Annotated[dict[str, Any] | None, BeforeValidator(_any_args)] = None
    args_match: Rule = Field(default=None, validation_alias=AliasChoices("args_match", "argsMatch"))
    max_duration_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, validation_alias=AliasChoices("max_duration_ms", "maxDurationMs")
    )


class ToolTrajectoryFile(EvaluatorFile):
    mode: Literal["any_order", "in_order", "exact"]
    minimums: dict[str, Count] | None = None
    expected: list[ExpectedToolFile] | None = None
    args_match: Rule = Field(default="superset", validation_alias=AliasChoices("args_match", "argsMatch"))


class ExpectedMessagesFile(EvaluatorFile):
    pass


class CompositeFile(EvaluatorFile):
    evaluators: Annotated[list[Any], Field(min_length=1)]
    aggregator: dict[str, Any] | None = None


class WeightedAverageFile(Mirror):
    type: str
    weights: dict[str, Weight] = Field(default_factory=dict)


class CodeAggregatorFile(Mirror):
    type: str
    path: Command
    cwd: str | None = None
    timeout_seconds: Seconds = 60.0
    network: bool = False


class LlmAggregatorFile(Mirror):
    type: str
    prompt: Text | None = None
    model: str | None = None


class GuidelineSettings(Mirror):
    """`.agentv.yaml` and `.agentv/config.yaml`."""

    schema_: str | None = Field(default=None, alias="$schema")
    guideline_patterns: list[Text] | None = None
