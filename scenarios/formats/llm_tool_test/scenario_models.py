"""The models of llm-tool-test's scenario, rubric and settings files, and lints of valid scenarios."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from evaluators.grading.evaluate import CompositeWeights, Criteria
from evaluators.grading.gates.informing_scripts import EvaluatorScript
from evaluators.grading.judges.rubric import Criterion, JudgeCriteria
from evaluators.model import AS_TUPLE, Amount, Json, Key, Seconds, Share, Text
from evaluators.tool_use.tool import Tool
from scenarios.formats.parsed import Location, Mirror, PositionedDocument, Problem, reads_as
from scenarios.spec import PostScript, ScenarioOptions, TrialLimits


def _prompt_alone(value: Json) -> Json:
    return {"prompt": value} if isinstance(value, str) else value


ProtectedChanged = Literal["warn", "fail"]
"""What a trial is whose agent changed protected files: with a warning, or failed."""
GitConfig = Literal["clean", "keep"]
"""Whether Git settings of the agent that execute something are removed before gates."""
FIXTURE_FOLDERS = ("llm-test-fixtures", "fixtures")
"""The default folders of `templates/`: the first by llm-tool-test's code, the second by its manual."""
Gates = list[Annotated[Any, reads_as("gate")]]


class TaskModel(Mirror):
    prompt: Text
    """The agent's prompt."""


class Setup(Mirror):
    commands: list[Text] = Field(default_factory=list)
    """Commands to run in the workspace before the agent; a failure makes the trial an error."""


class PostScriptFile(PostScript):
    timeout_seconds: Seconds = Field(default=30.0, alias="timeout_secs")


class EvaluatorFile(EvaluatorScript):
    timeout_seconds: Seconds = Field(default=60.0, alias="timeout_secs")


class Scripts(Mirror):
    post: list[PostScriptFile] = Field(default_factory=list)
    """Scripts to run between agent and gates; a failure is recorded and changes nothing."""
    evaluators: list[EvaluatorFile] = Field(default_factory=list)
    """Scripts to run after the gates; they report scores and never decide."""


class Judge(JudgeCriteria):
    """The judge of a scenario; one that is off needs no rubric."""

    rubric: Annotated[Any, reads_as("rubric")] = None
    """A path or an inline rubric."""
    pass_threshold: Share | None = None  # type: ignore[assignment]
    """The lowest passing score, 0 to 1."""


class EvaluationModel(Mirror):
    gates: Gates | None = None
    """Checks without a model; all must pass."""
    judge: Judge | None = None
    """A model that scores the trial by a rubric."""
    composite: CompositeWeights | None = None
    """The weights of a score of all layers."""


class MatrixEntryFile(Mirror):
    tool: Text
    """A target's name."""
    models: list[Text] = Field(default_factory=list)
    """Its models."""


class RunLimits(TrialLimits):
    timeout_seconds: Seconds | None = Field(default=None, alias="timeout_secs")
    """Time limit of the agent in seconds."""


class ScenarioFile(ScenarioOptions, Mirror):
    """One scenario file."""

    name: Key
    """The scenario's key in its suite."""
    description: str = ""
    """Shown on pages."""
    template_folder: str = ""
    """The folder with the initial workspace of every trial; empty for an empty one."""
    target: Tool | None = None
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
    protected: list[Text] | None = None
    """Patterns of the fixture's files that are not the task, such as `tests/**`."""
    hidden: list[Text] | None = None
    """Patterns of files that the agent must not see."""
    protected_changed: ProtectedChanged | None = None
    """`fail` makes a change of protected files a failure."""
    git_config: GitConfig | None = None
    """Whether Git settings of the agent that execute something are removed before gates."""


class RubricOutput(Mirror):
    format: Literal["json"] = "json"
    require_fields: list[Text] = Field(default_factory=list)
    """Fields that the judge's answer must have."""


class RubricFile(Mirror):
    """One rubric, in its own file or inline."""

    name: str = ""
    description: str = ""
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1), AS_TUPLE]
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

    input_cost_per_1k_tokens: Amount
    output_cost_per_1k_tokens: Amount
    cache_read_cost_per_1k_tokens: Amount | None = None
    """Cached tokens cost as much as others without a rate of their own."""
    cache_write_cost_per_1k_tokens: Amount | None = None
    cache_write_1h_cost_per_1k_tokens: Amount | None = None
    reasoning_cost_per_1k_tokens: Amount | None = None


class SettingsFile(Mirror):
    """`llm-tool-test-config.toml`."""

    target: Tool | None = None
    tools: dict[str, ToolSettings] = Field(default_factory=dict)
    profiles: dict[str, ProfileSettings] = Field(default_factory=dict)
    models: dict[str, ModelSettings] = Field(default_factory=dict)
    protected: Annotated[tuple[Text, ...], AS_TUPLE] | None = None
    hidden: Annotated[tuple[Text, ...], AS_TUPLE] = ()
    protected_changed: ProtectedChanged = "warn"
    git_config: GitConfig = "clean"
    fixtures_path: str = ""
    results_path: str = ""

    @property
    def fixture_folders(self) -> tuple[str, ...]:
        """The folders of `templates/`."""
        named = self.fixtures_path.strip("/") if self.fixtures_path.strip("./") else ""
        return (*filter(None, [named]), *FIXTURE_FOLDERS)

    @property
    def kept(self) -> dict[str, Json]:
        """Tools, profiles and prices, for `ParsedSuite.settings`."""
        entries = self.model_dump(mode="json", include={"tools", "profiles", "models"}, exclude_none=True)
        return {name: each for name, each in entries.items() if each}


FILL_IN = "FILL-IN"
"""Marks what a person still has to write in a drafted scenario."""


def lints(scenario_file: ScenarioFile, criteria: Criteria, document: PositionedDocument) -> list[Problem]:
    """Return the lints of a valid scenario."""
    return [
        *_vacuous(scenario_file, document),
        *_to_fill_in(scenario_file, document),
        *_without_tool(criteria, document),
        *_repeated_evaluators(scenario_file, document),
        *_empty_matrix(scenario_file, document),
        *_no_composite(criteria, document),
    ]


def _lint(document: PositionedDocument, at: Location, what: str, fix: str, id: str) -> Problem:
    return document.problem(at, what, fix=fix, id=id, lint=True)


def _vacuous(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    judge = scenario_file.evaluation.judge
    if scenario_file.evaluation.gates or scenario_file.gates or (judge and judge.enabled):
        return []
    what = "Every trial passes, because there is no gate and no judge."
    return [_lint(document, ("evaluation",), what, "Add a gate or a judge.", "format/vacuous")]


def _to_fill_in(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    """Return the parts of a drafted scenario that a person still has to write."""
    places: list[tuple[Location, object]] = [(("task", "prompt"), scenario_file.task.prompt)]
    key: Location = ("evaluation", "gates") if scenario_file.evaluation.gates is not None else ("gates",)
    gates = (
        scenario_file.evaluation.gates
        if scenario_file.evaluation.gates is not None
        else scenario_file.gates or []
    )
    places += [((*key, index), gate) for index, gate in enumerate(gates)]
    return [
        _lint(
            document,
            at,
            f"The draft's {'task' if at[0] == 'task' else 'gate'} still contains {FILL_IN}.",
            "Describe the task and what must be true after it.",
            "format/to-fill-in",
        )
        for at, value in places
        if FILL_IN in str(value)
    ]


def _without_tool(criteria: Criteria, document: PositionedDocument) -> list[Problem]:
    if criteria.tool is not None:
        return []
    what = "Without a tool, interaction metrics need an agent that reports tool calls."
    fix = "Add 'target:' with a binary or a command_pattern."
    return [_lint(document, ("target",), what, fix, "format/no-tool")]


def _repeated_evaluators(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    names = [script.name for script in scenario_file.scripts.evaluators]
    return [
        _lint(
            document,
            ("scripts", "evaluators", index, "name"),
            f"Another evaluator is also named '{name}', so their scores are mixed.",
            "Give each evaluator a unique name.",
            "format/duplicate-evaluator",
        )
        for index, name in enumerate(names)
        if name in names[:index]
    ]


def _empty_matrix(scenario_file: ScenarioFile, document: PositionedDocument) -> list[Problem]:
    if scenario_file.tool_matrix is None or scenario_file.tool_matrix:
        return []
    what = "The tool_matrix is empty, so it runs nothing."
    return [_lint(document, ("tool_matrix",), what, "Name a tool or remove the key.", "format/empty-matrix")]


def _no_composite(criteria: Criteria, document: PositionedDocument) -> list[Problem]:
    weights = criteria.composite
    if weights is None or any(weights.model_dump().values()):
        return []
    what = "All weights are 0, so there is no composite score."
    at = ("evaluation", "composite")
    return [_lint(document, at, what, "Give a weight above 0 or remove the section.", "format/no-composite")]
