"""The models of AgentV's eval files, and of assertions whose form in files differs from their class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from evaluators.grading.evaluator import BaseEvaluator, Message
from evaluators.grading.judges.checklist_judge import RubricItem
from evaluators.grading.scores.composite_evaluator import Aggregator, CompositeEvaluator, WeightedAverage
from evaluators.model import Count, Json, Key, Seconds, Share, Text
from scenarios.formats.parsed import Mirror, reads_as


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


def _on_or_off(value: Json) -> Json:
    """Convert `on` and `off`, which YAML 1.2 reads as text."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


class TrialsFile(Mirror):
    """`execution.trials`, `evaluate_options.repeat`: how often each case runs."""

    count: Annotated[int, Field(ge=1)] = 1
    strategy: str | None = None


def _trials(value: Json) -> Json:
    """Read a number as the count of trials."""
    return {"count": value} if isinstance(value, int) and not isinstance(value, bool) else value


Trials = Annotated[
    TrialsFile,
    BeforeValidator(_trials, json_schema_input_type=Annotated[int, Field(ge=1)] | TrialsFile),
]
Evaluators = list[Annotated[Any, reads_as("evaluator")]]
Rubrics = list[Annotated[Any, reads_as("statement")]]


class TargetFile(Mirror):
    """A target by name, in `execution.targets` and `providers`; its definition is in the targets file."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    unrunnable: ClassVar[Mapping[str, str]] = {"hooks": "Remove it."}

    name: Text | None = None
    label: Text | None = None
    id: Text | None = None

    @property
    def target(self) -> str:
        """The name of its target here; its `id` is another one."""
        return self.label or self.name or self.id or ""


def _target(value: Json) -> Json:
    return {"name": value} if isinstance(value, str) else value


Targets = list[Annotated[TargetFile, BeforeValidator(_target, json_schema_input_type=Text | TargetFile)]]


class Execution(Mirror):
    """Execution settings of a suite or case; a case's fields override its suite's."""

    target: str | None = None
    targets: Targets | None = None
    evaluators: Evaluators | None = None
    threshold: Share | None = None
    expected_messages: (
        Annotated[bool, BeforeValidator(_on_or_off, json_schema_input_type=bool | Literal["on", "off"])]
        | None
    ) = None
    skip_defaults: bool = False
    trials: Trials | None = None


class EvaluateOptions(Mirror):
    repeat: Trials | None = None


_TESTBED = "evalhub runs agents in its own workspace: remove it, and prepare the agent in its target."
_UNRUNNABLE: Mapping[str, str] = {
    **dict.fromkeys(("environment", "workspace", "extensions", "hooks"), _TESTBED),
    "preprocessors": "Remove it: answers are judged as they are.",
    "options": "Remove it: answers are judged as they are.",
}


class DefaultTest(Mirror):
    """`default_test`: what all tests share."""

    unrunnable: ClassVar[Mapping[str, str]] = _UNRUNNABLE

    vars: dict[str, Any] = Field(default_factory=dict)
    evaluators: Evaluators | None = None
    threshold: Share | None = None
    metadata: Any = None


class JudgedFile(Mirror):
    """What an eval file says for all its cases, and a case for itself."""

    evaluator: str | None = None
    evaluators: Evaluators | None = None
    """What answers are judged by."""
    execution: Execution | None = None
    """Settings; a case's have priority over its file's."""
    threshold: Share | None = None
    """The lowest passing score, 0 to 1."""
    input_files: list[Text] | None = None
    """Files that are part of the question."""
    tags: Any = None
    metadata: Any = None


class EvalFile(JudgedFile):
    """A file without its cases, or the sidecar of a JSONL dataset."""

    unrunnable: ClassVar[Mapping[str, str]] = {
        **_UNRUNNABLE,
        "env": "Set the variables in the target.",
        "scenarios": "Write each combination as a test.",
        "transform": "Remove it: answers are judged as they are.",
    }

    schema_: str | None = Field(default=None, alias="$schema")
    name: Text | None = None
    """The suite's name."""
    suite: Text | None = None
    description: str | None = None
    """Shown on pages."""
    category: Any = None
    version: Any = None
    author: Any = None
    license: Any = None
    requires: Any = None
    governance: Any = None
    dataset: Text | None = None
    """The suite's name."""
    target: str | None = None
    """The target of runs that name none."""
    targets: Targets | None = None
    providers: Targets | None = None
    input: Any = None
    """Messages before those of each case."""
    prompts: list[Annotated[Any, reads_as("prompt")]] | None = None
    """Prompts that are crossed with the tests."""
    default_test: Annotated[DefaultTest | None, reads_as("default_test")] = None
    """What all tests share, here or in a file."""
    evaluate_options: EvaluateOptions | None = None
    repeat: Trials | None = None
    """How often each case runs."""
    timeout_seconds: Seconds | None = None
    """Time limit of the agent in seconds."""


class EvalCaseFile(JudgedFile):
    """One eval case."""

    unrunnable: ClassVar[Mapping[str, str]] = {
        **_UNRUNNABLE,
        **dict.fromkeys(
            ("turns", "mode", "aggregation", "on_turn_failure", "window_size"),
            "Write each turn as a case, with the messages before it.",
        ),
        **dict.fromkeys(("depends_on", "on_dependency_failure"), "Each case must stand alone."),
        "run": "Write 'threshold:' in the test, 'evaluate_options:' and 'timeout_seconds:' in the file.",
        **dict.fromkeys(("provider", "provider_output"), "Choose the target in 'providers:' of the file."),
    }

    id: Key
    """The case's key in its suite."""
    expected_outcome: str | None = None
    """What a good answer does, for a judge."""
    conversation_id: str | None = None
    """Groups related cases."""
    note: str | None = None
    """Shown on pages."""
    input_messages: Annotated[list[Message], Field(min_length=1), reads_as("input")]
    """What the agent is asked: a text, or messages."""
    expected_messages: Annotated[list[Message] | None, reads_as("expected")] = None
    """A reference answer: a text, or messages with tool calls."""
    rubrics: Rubrics | None = None
    """Statements that a judge checks one by one."""
    vars: dict[str, Any] = Field(default_factory=dict)
    """Values of `{{ name }}` in input and assertions."""


class RubricItemFile(RubricItem):
    decisive: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("min_score", "required_min_score", "score_ranges"),
        "Split it into statements that are satisfied or not.",
    )

    id: Text
    description: Text
    operator: Literal["correctness", "contradiction"] = "correctness"


AGGREGATOR_ALIASES = {"script": "code_judge", "llm_rubric": "llm_judge"}
"""The names of aggregators after AgentV 4.42."""


class GuidelineSettings(Mirror):
    """`.agentv.yaml` and `.agentv/config.yaml`."""

    schema_: str | None = Field(default=None, alias="$schema")
    guideline_patterns: list[Text] | None = None
