"""What a scenario is once no format is left in it: what to run, and what is asked of it."""

from __future__ import annotations

from pydantic import Field

from evaluators.criteria import Criteria
from evaluators.model import Json
from evaluators.values import Value


class PostScript(Value):
    """A script that runs after the agent and before the gates; its failure is noted, no more."""

    command: str
    timeout_seconds: float = 30.0
    network: bool = False


class Limits(Value):
    """How far a trial may go; None leaves it to the target or the request."""

    timeout_seconds: float | None = None
    max_turns: int | None = None


class Cost(Value):
    """What a trial may cost, and whether a pass may be taken from an earlier run."""

    max_usd: float | None = None
    cache: bool = True


class MatrixEntry(Value):
    """A target by name and the models to run on it (`tool_matrix`)."""

    target: str
    models: tuple[str, ...] = ()


class ScenarioSpec(Value):
    """One task: a stable key in its suite, what to run, and the criteria."""

    key: str
    description: str = ""
    prompt: str
    fixture: str | None = None
    """Name of the fixture in its suite; None is an empty workspace."""
    setup: tuple[str, ...] = ()
    post: tuple[PostScript, ...] = ()
    limits: Limits = Field(default_factory=Limits)
    tags: tuple[str, ...] = ()
    tier: int = 0
    cost: Cost = Field(default_factory=Cost)
    matrix: tuple[MatrixEntry, ...] | None = None
    criteria: Criteria = Field(default_factory=Criteria)
    agent_prompt: str = ""
    """The prompt for an agent that opens files itself: it names them, `prompt` holds them; empty for the same."""
    messages: tuple[Json, ...] = ()
    """A conversation, each with role and content; empty where the prompt is all there is."""
    conversation: str = ""
    """What groups cases that belong together (`conversation_id`)."""
    target: str = ""
    """Name of the target it is meant for, where a request names none."""
    bundle: str | None = None
    """Name of the fixture with the files that came with it: these lie beside the workspace, not in it."""
    folder: str = ""
    """The scenario file's own folder in the bundle."""
    stubs: dict[str, Json] | None = None
    """What each tool answers; None is no stub mode, which an empty mapping is."""
    difficulty: str = ""
    """How hard its author finds it, in the words of its file."""
    bug_ref: str = ""
    """The bug whose return it would notice."""
    metadata: dict[str, Json] = Field(default_factory=dict)
    """What else its file says of it, kept and not acted on."""
    file: str = ""
    line: int = 1

    @property
    def carried(self) -> str:
        """Name of the fixture that a worker needs, whether its files are the workspace or lie beside it."""
        return self.fixture or self.bundle or ""

    @property
    def input_files(self) -> tuple[str, ...]:
        """Attachments, as paths in the bundle."""
        return self.criteria.input_files

    @property
    def guidelines(self) -> tuple[str, ...]:
        """Guideline files, likewise."""
        return self.criteria.guidelines
