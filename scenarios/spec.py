"""What a scenario is once no format is left in it: what to run, and what is asked of it."""

from __future__ import annotations

from pydantic import Field

from evaluators.criteria import Criteria, Value


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
    limits: Limits = Limits()
    tags: tuple[str, ...] = ()
    tier: int = 0
    cost: Cost = Cost()
    matrix: tuple[MatrixEntry, ...] | None = None
    criteria: Criteria = Field(default_factory=Criteria)
    file: str = ""
    line: int = 1
