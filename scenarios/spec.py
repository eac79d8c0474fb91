"""The scenario as a value, independent of its file format."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluators.grading.evaluate import Criteria
from evaluators.grading.gates.base_gate import CommandGate
from evaluators.model import AS_TUPLE, Amount, Json, Seconds, StrictModel, Text, TextOrNone


class PostScript(StrictModel):
    """A script that runs between agent and gates; its failure is only recorded."""

    command: Text
    timeout_seconds: Seconds = 30.0
    network: bool = False


class TrialLimits(StrictModel):
    """Limits of a trial; None leaves them to the target or the request."""

    timeout_seconds: float | None = None
    max_turns: Annotated[int, Field(ge=1)] | None = None
    """The most turns of the agent."""


class Cost(StrictModel):
    """The cost limit of a trial."""

    max_usd: Amount | None = None
    """The cost limit of a trial's agent in US dollars."""
    cache: bool = True
    """Read and stored; no pass is ever reused."""


class MatrixEntry(StrictModel):
    """One entry of `tool_matrix`: a target and its models."""

    target: str
    models: tuple[str, ...] = ()
    id: str = ""
    """Another name of the target, if there is none with the first one (AgentV's `id` beside `label`)."""


class ScenarioTask(StrictModel):
    """What an agent is asked, and where."""

    key: str
    description: str = ""
    prompt: str
    fixture: str | None = None
    """The fixture's name in the suite; None for an empty workspace."""
    setup: tuple[str, ...] = ()
    post: tuple[PostScript, ...] = ()
    limits: TrialLimits = Field(default_factory=TrialLimits)


class ScenarioOptions(StrictModel):
    """How a scenario is chosen, limited and recorded; a file of llm-tool-test says it with the same keys."""

    tags: Annotated[tuple[TextOrNone, ...], AS_TUPLE] = ()
    """For selecting scenarios."""
    tier: Annotated[int, Field(ge=0, le=1000)] = 0
    """0 smoke, 1 quick, 2 standard, 3 comprehensive."""
    cost: Cost = Field(default_factory=Cost)
    """The cost limit of a trial."""
    record_tool: bool = True
    """Whether executions of the tool are recorded where the machine can."""


class ScenarioSpec(ScenarioOptions, ScenarioTask):
    """One scenario: a stable key in its suite, the task and the criteria; the fields of the last base come first."""

    hidden: tuple[str, ...] = ()
    """Patterns of the workspace's files that the agent must not see."""
    matrix: tuple[MatrixEntry, ...] | None = None
    criteria: Criteria = Field(default_factory=Criteria)
    agent_prompt: str = ""
    """The prompt for agents that open files: it names files where `prompt` includes them. Empty if equal."""
    messages: tuple[Json, ...] = ()
    """The messages of a conversation with role and content; empty for a single prompt."""
    conversation: str = ""
    """The id that groups related cases (`conversation_id`)."""
    target: str = ""
    """The default target for requests without one."""
    bundle: str | None = None
    """The fixture with the uploaded files, which are next to the workspace, not in it."""
    folder: str = ""
    """The scenario file's folder in the bundle."""
    stubs: dict[str, Json] | None = None
    """The answers of stubbed tools; None outside stub mode, an empty mapping in stub mode without stubs."""
    difficulty: str = ""
    """The difficulty, as written in the file."""
    bug_ref: str = ""
    """The bug that a regression case covers."""
    metadata: dict[str, Json] = Field(default_factory=dict)
    """Other metadata of the file, stored and not used."""
    file: str = ""
    line: int = 1

    @property
    def worker_fixture(self) -> str:
        """The name of the fixture a worker needs, inside or next to the workspace."""
        return self.fixture or self.bundle or ""

    @property
    def commands_after_agent(self) -> list[str]:
        """The commands of scripts and gates, which run in the workspace when the agent has ended."""
        scripts = [script.command for script in self.post] + [
            script.command for script in self.criteria.scripts
        ]
        return scripts + [gate.command for gate in self.criteria.gates if isinstance(gate, CommandGate)]

    @property
    def input_files(self) -> tuple[str, ...]:
        """Attachments, as paths in the bundle."""
        return self.criteria.input_files

    @property
    def guidelines(self) -> tuple[str, ...]:
        """Guideline files, as paths in the bundle."""
        return self.criteria.guidelines
