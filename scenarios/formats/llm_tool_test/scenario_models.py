"""The models of llm-tool-test's scenario, rubric and settings files."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from evaluators.grading.criteria import CompositeWeights
from evaluators.model import Json
from scenarios.formats.validation import Mirror, reads_as

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Key = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


def _scalars_as_text(value: Json) -> Json:
    """Convert environment values such as `PORT: 8080` and `DEBUG: true` to text."""
    if not isinstance(value, dict):
        return value
    return {key: _scalar_as_text(item) for key, item in value.items()}


def _scalar_as_text(value: Json) -> Json:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _prompt_alone(value: Json) -> Json:
    return {"prompt": value} if isinstance(value, str) else value


ProtectedChanged = Literal["warn", "fail"]
"""What a trial is whose agent changed protected files: with a warning, or failed."""
GitConfig = Literal["clean", "keep"]
"""Whether Git settings of the agent that execute something are removed before gates."""
SERVER_NAME = r"[a-z0-9][a-z0-9-]{0,39}"
"""Part of the names of an MCP server's tools, in which agents change other characters."""
SERVER_URL = r"https?://[^\s/]\S*"
Environment = Annotated[
    dict[str, str],
    BeforeValidator(_scalars_as_text, json_schema_input_type=dict[str, str | int | float | bool]),
]
Gates = list[Annotated[Any, reads_as("gate")]]


class McpTarget(Mirror):
    """An MCP server as the tool under test."""

    name: str
    """The server's name: lower-case letters, digits and hyphens."""
    command: str = ""
    """Starts the server in the workspace; or give `url`."""
    url: str = ""
    """The address of a server that runs elsewhere; or give `command`."""
    headers: Environment = Field(default_factory=dict)
    """Headers of requests to `url`; secrets as `${{ NAME }}`."""
    transport: Literal["", "http"] = ""
    """How a server at `url` is spoken to: Streamable HTTP, written or not."""
    help_tools: list[Text] = Field(default_factory=list)
    """Tools of the server whose calls count as help."""

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        if not re.fullmatch(SERVER_NAME, self.name):
            raise ValueError("The server's `name` has up to 40 lower-case letters, digits and hyphens")
        if self.url and not re.fullmatch(SERVER_URL, self.url):
            raise ValueError("The server's `url` begins with http:// or https://")
        if bool(self.command.strip()) == bool(self.url):
            raise ValueError("An MCP server needs a `command` or a `url`, and not both")
        if self.command.strip() and (self.headers or self.transport):
            raise ValueError("`headers` and `transport` belong to a server with a `url`")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or re.search(r"[\r\n\0]", value):
                raise ValueError(f"'{name}' can't be a header: names are words, and values have one line")
        return self


class TargetModel(Mirror):
    """The tool under test: `target:` of a scenario and `[target]` of the settings."""

    binary: str = ""
    """The program's name, which starts its commands if there is no pattern."""
    command_pattern: str = ""
    """A regular expression for the tool's commands; a group named `sub`, else the last group, is the subcommand."""
    health_check: str = ""
    """Must exit with 0 before a run starts."""
    version_command: str = ""
    """Prints the tool's version before a run."""
    env: Environment = Field(default_factory=dict)
    """Variables for setup, agent, gates and scripts; `${NAME}` is one of the worker's."""
    files: list[Text] = Field(default_factory=list)
    """Patterns of fixture files that are the tool, beside the binary."""
    mcp: McpTarget | None = None
    """An MCP server in place of a program."""


class TaskModel(Mirror):
    prompt: Text
    """The agent's prompt."""


class Setup(Mirror):
    commands: list[Text] = Field(default_factory=list)
    """Commands to run in the workspace before the agent; a failure makes the trial an error."""


class PostScriptFile(Mirror):
    command: Text
    timeout_secs: Seconds = 30.0
    network: bool = False


class Evaluator(Mirror):
    command: Text
    name: Text
    timeout_secs: Seconds = 60.0
    network: bool = False


class Scripts(Mirror):
    post: list[PostScriptFile] = Field(default_factory=list)
    """Scripts to run between agent and gates; a failure is recorded and changes nothing."""
    evaluators: list[Evaluator] = Field(default_factory=list)
    """Scripts to run after the gates; they report scores and never decide."""


class Judge(Mirror):
    enabled: bool = True
    """Whether the judge is asked; one that is off needs no rubric."""
    rubric: Annotated[Any, reads_as("rubric")] = None
    """A path or an inline rubric."""
    pass_threshold: Share | None = None
    """The lowest passing score, 0 to 1."""
    model: str = ""
    """A target's name or a model; empty for the project's."""
    when: Literal["always", "gates_pass"] = "always"
    """`gates_pass` saves the cost of judging trials that failed."""
    judgings: Annotated[int, Field(ge=1, le=20)] = 1
    """Calls of the judge for each trial; their mean counts."""
    on_mismatch: Literal["warn", "error"] = "warn"
    """What happens if the judge's total differs from its criteria by their weights."""


class Weights(Mirror):
    """The weights of the composite score; each has llm-tool-test's default."""

    gate_weight: Weight = CompositeWeights().gate_weight
    judge_weight: Weight = CompositeWeights().judge_weight
    interaction_weight: Weight = CompositeWeights().interaction_weight


class EvaluationModel(Mirror):
    gates: Gates | None = None
    """Checks without a model; all must pass."""
    judge: Judge | None = None
    """A model that scores the trial by a rubric."""
    composite: Weights | None = None
    """The weights of a score of all layers."""


class MatrixEntryFile(Mirror):
    tool: Text
    """A target's name."""
    models: list[Text] = Field(default_factory=list)
    """Its models."""


class RunLimits(Mirror):
    timeout_secs: Seconds | None = None
    """Time limit of the agent in seconds."""
    max_turns: Annotated[int, Field(ge=1)] | None = None
    """The most turns of the agent."""


class CostFile(Mirror):
    max_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """The cost limit of a trial's agent in US dollars."""
    cache: bool = True
    """Read and stored; no pass is ever reused."""


class ScenarioFile(Mirror):
    """One scenario file."""

    name: Key
    """The scenario's key in its suite."""
    description: str = ""
    """Shown on pages."""
    template_folder: str = ""
    """The folder with the initial workspace of every trial; empty for an empty one."""
    target: TargetModel | None = None
    """The tool under test; without it, the settings' tool."""
    task: Annotated[TaskModel, BeforeValidator(_prompt_alone, json_schema_input_type=Text | TaskModel)]
    """The agent's prompt."""
    setup: Setup = Setup()
    """What runs before the agent."""
    scripts: Scripts = Scripts()
    """Scripts that run after the agent."""
    evaluation: EvaluationModel = EvaluationModel()
    """What the trial is judged by."""
    gates: Gates | None = None
    """An alias of `evaluation.gates`."""
    tool_matrix: list[MatrixEntryFile] | None = None
    """Targets to run on."""
    run: RunLimits = RunLimits()
    """Limits of the agent."""
    tags: list[Text] = Field(default_factory=list)
    """For selecting scenarios."""
    tier: Annotated[int, Field(ge=0, le=1000)] = 0
    """0 smoke, 1 quick, 2 standard, 3 comprehensive."""
    cost: CostFile = CostFile()
    """The cost limit of a trial."""
    record_tool: bool = True
    """Whether executions of the tool are recorded where the machine can."""
    protected: list[Text] | None = None
    """Patterns of the fixture's files that are not the task, such as `tests/**`."""
    hidden: list[Text] | None = None
    """Patterns of files that the agent must not see."""
    protected_changed: ProtectedChanged | None = None
    """`fail` makes a change of protected files a failure."""
    git_config: GitConfig | None = None
    """Whether Git settings of the agent that execute something are removed before gates."""


class RubricCriterion(Mirror):
    id: Text
    """The criterion's name in the judge's answer."""
    weight: Weight
    """Its share of the score; all add up to 1."""
    description: str = ""
    """What the judge checks."""


class RubricOutput(Mirror):
    format: Literal["json"] = "json"
    require_fields: list[Text] = Field(default_factory=list)
    """Fields that the judge's answer must have."""


class RubricFile(Mirror):
    """One rubric, in its own file or inline."""

    name: str = ""
    description: str = ""
    criteria: Annotated[list[RubricCriterion], Field(min_length=1)]
    output: RubricOutput = RubricOutput()


class ToolSettings(Mirror):
    name: str = ""
    command: str = ""
    models: list[Text] = Field(default_factory=list)


class ProfileSettings(Mirror):
    name: str = ""
    tools: list[Text] = Field(default_factory=list)
    models: list[Text] = Field(default_factory=list)


class ModelSettings(Mirror):
    """A model's price; half of one is an error, because no cost follows from it."""

    input_cost_per_1k_tokens: Weight
    output_cost_per_1k_tokens: Weight
    cache_read_cost_per_1k_tokens: Weight | None = None
    """Cached tokens cost as much as others without a rate of their own."""
    cache_write_cost_per_1k_tokens: Weight | None = None
    cache_write_1h_cost_per_1k_tokens: Weight | None = None
    reasoning_cost_per_1k_tokens: Weight | None = None


class SettingsFile(Mirror):
    """`llm-tool-test-config.toml`."""

    target: TargetModel | None = None
    tools: dict[str, ToolSettings] = Field(default_factory=dict)
    profiles: dict[str, ProfileSettings] = Field(default_factory=dict)
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    protected: list[Text] | None = None
    hidden: list[Text] | None = None
    protected_changed: ProtectedChanged | None = None
    git_config: GitConfig | None = None
    fixtures_path: str = ""
    results_path: str = ""
