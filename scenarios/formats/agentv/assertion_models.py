"""The models of the assertions in eval files of AgentV 2 and later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from evaluators.model import Json
from scenarios.formats.agentv.eval_models import Count, EvaluatorFile, Evaluators, Share, Text, Weight
from scenarios.formats.validation import Mirror

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _as_list(value: Json) -> Json:
    """Return a single value as a list."""
    return [value] if isinstance(value, str | dict) else value


Texts = Annotated[
    Annotated[list[Text], Field(min_length=1)],
    BeforeValidator(_as_list, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]),
]


class TextFile(EvaluatorFile):
    """`contains`, `equals` and their like."""

    value: Text


class TextsFile(EvaluatorFile):
    """`contains-any`, `icontains-all` and their like."""

    value: Texts


class RegexFile(EvaluatorFile):
    value: Text
    flags: Annotated[str, Field(pattern=r"^[gimsu]*$")] = ""


class JsonFile(EvaluatorFile):
    value: dict[str, Any] | None = None


class LatencyFile(EvaluatorFile):
    threshold: Amount


class CostLimitFile(EvaluatorFile):
    budget: Amount | None = None
    threshold: Amount | None = None


class TokenUsageFile(EvaluatorFile):
    max_total: Amount | None = None
    max_input: Amount | None = None
    max_output: Amount | None = None


class ExecutionMetricsFile(EvaluatorFile):
    max_tool_calls: Amount | None = None
    max_llm_calls: Amount | None = None
    max_tokens: Amount | None = None
    max_cost_usd: Amount | None = None
    max_duration_ms: Amount | None = None
    target_exploration_ratio: Share | None = None
    exploration_tolerance: Amount = 0.2


class FieldFile(Mirror):
    path: Text
    match: Literal["exact", "numeric_tolerance", "date"]
    required: bool = True
    weight: Weight = 1.0
    tolerance: Amount = 0.0
    relative: bool = False
    formats: list[Text] = Field(default_factory=list)


class FieldAccuracyFile(EvaluatorFile):
    fields: Annotated[list[FieldFile], Field(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"


class SkillTriggerFile(EvaluatorFile):
    skill: Text
    should_trigger: bool = True


class SkillUsedFile(EvaluatorFile):
    value: Text


class ToolCountFile(Mirror):
    """The value of `trajectory:tool-used`."""

    name: Text | None = None
    pattern: Text | None = None
    min: Count | None = None
    max: Count | None = None


def _tool_of_step(value: Json) -> Json:
    """Return the tool that a step in the form of a mapping names; its `pattern` has priority."""
    if not isinstance(value, dict):
        return value
    if not value or not set(value) <= {"name", "pattern"}:
        raise ValueError("A step must be a tool's name, or a mapping with 'name' or 'pattern'")
    return value.get("pattern") or value.get("name")


Step = Annotated[
    Text,
    BeforeValidator(
        _tool_of_step,
        json_schema_input_type=Text | Annotated[dict[Literal["name", "pattern"], Text], Field(min_length=1)],
    ),
]


class ToolSequenceFile(Mirror):
    mode: Literal["in_order", "exact"] = "in_order"
    steps: Annotated[list[Step], Field(min_length=1)]


class ToolArgumentsFile(Mirror):
    unrunnable: ClassVar[Mapping[str, str]] = {"defaults": "Write these arguments in 'ignore:'."}

    name: Text | None = None
    pattern: Text | None = None
    args: dict[str, Any] = Field(validation_alias=AliasChoices("args", "arguments"))
    mode: Literal["partial", "exact"] = "partial"
    ignore: Annotated[list[Text], BeforeValidator(_as_list, json_schema_input_type=Text | list[Text])] = (
        Field(default_factory=list)
    )


class StepCountFile(Mirror):
    type: Literal["tool", "command", "message"] | None = None
    name: Text | None = None
    pattern: Text | None = None
    min: Count = 0
    max: Count | None = None


class GoalFile(Mirror):
    goal: Text


class ValueFile(EvaluatorFile):
    """An assertion whose `value` has a model of its own."""

    value: Any


VALUE_MODELS: Mapping[str, type[Mirror]] = {
    "trajectory:tool-used": ToolCountFile,
    "trajectory:tool-sequence": ToolSequenceFile,
    "trajectory:tool-args-match": ToolArgumentsFile,
    "trajectory:step-count": StepCountFile,
    "trajectory:goal-success": GoalFile,
}
"""The models of the values of `ValueFile`, by kind."""


class AssertSetFile(EvaluatorFile):
    unrunnable: ClassVar[Mapping[str, str]] = {"config": "Write the settings in each assertion."}

    evaluators: Annotated[Evaluators, Field(min_length=1)]
