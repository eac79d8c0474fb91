"""The models of assertions in eval files of AgentV 2 and later whose files have another form than their class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from evaluators.grading.evaluator import BaseEvaluator
from evaluators.grading.scores.composite_evaluator import Aggregator, CompositeEvaluator, WeightedAverage
from evaluators.model import Count, Json, Text
from scenarios.formats.validation import Mirror


def _as_list(value: Json) -> Json:
    """Return a single value as a list."""
    return [value] if isinstance(value, str | dict) else value


Texts = Annotated[
    Annotated[list[Text], Field(min_length=1)],
    BeforeValidator(_as_list, json_schema_input_type=Text | Annotated[list[Text], Field(min_length=1)]),
]


class ValueFile(BaseEvaluator):
    """An assertion whose `value` has a model of its own."""

    value: Any


class TextFile(ValueFile):
    """`contains`, `equals` and their like."""

    value: Text


class TextsFile(ValueFile):
    """`contains-any`, `icontains-all` and their like."""

    value: Texts


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


VALUE_MODELS: Mapping[str, type[Mirror]] = {
    "trajectory:tool-used": ToolCountFile,
    "trajectory:tool-sequence": ToolSequenceFile,
    "trajectory:tool-args-match": ToolArgumentsFile,
    "trajectory:step-count": StepCountFile,
    "trajectory:goal-success": GoalFile,
}
"""The models of the values of `ValueFile`, by kind."""


class AssertSetFile(CompositeEvaluator):
    unrunnable: ClassVar[Mapping[str, str]] = {"config": "Write the settings in each assertion."}

    aggregator: SkipJsonSchema[Aggregator] = Field(default_factory=WeightedAverage)
