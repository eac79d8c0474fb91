"""Options of a request for runs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from evaluators.model import Json
from scenarios.formats.tool_descriptions import ToolDescriptions

DEFAULT_SECONDS = 300.0
"""Default time limit of an agent (as in llm-tool-test)."""


class RunOptions(BaseModel):
    """Options stored with the run as JSON, so that all workers read the same. Times in seconds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    trials: int = Field(default=1, ge=1, le=1000)
    concurrency: int | None = Field(default=None, ge=1, le=1000)
    """None means the target's `workers`, else 1."""
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """For scenarios without their own limit."""
    judge: bool = True
    judge_model: str = ""
    """A target's name or a model id; empty means the default judge."""
    threshold: float | None = Field(default=None, ge=0, le=1)
    """The aggregate score that a trial needs to pass; overrides the suite's."""
    baseline: str = ""
    """A run's number, `last-pass`, or empty for the pinned baseline."""
    baseline_note: str = ""
    """What a reader must know of a baseline that is a file, in a sentence."""
    baseline_file: Json = None
    """Of runs of older releases: `run_id` and `passed` by case of an EvalSuiteResult on disk."""
    shard: str = ""
    """Which part of its suite the run is, such as 1/3; empty for all of it."""
    verbose: bool = False
    """Store warnings about what makes no difference to the results, too."""
    experiment: bool = False
    """Compared like others, but never a baseline and never an alert."""
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The launch's budget: once its runs cost this much, no further trial starts."""
    until_decided: bool = False
    """Add trials in up to four looks until a verdict, `max_trials`, or no hope of one; `trials` are the first look's."""
    max_trials: int | None = Field(default=None, ge=1, le=1000)
    """With `until_decided`: the most trials of each scenario, on each side that is run."""
    looks_with: int | None = None
    """The run whose trials take turns with this one's, looked at together; None if its looks need no other run's."""
    is_old_side: bool = False
    """Of those two, whether it is the one compared with."""
    use_cache: bool = False
    """Reuse earlier passes with the same inputs; for single trials only."""
    expected_tool: str | None = None
    """The only tool version that the run accepts; None accepts any."""
    seed: Json = None
    snapshot: Json = None
    registry: Json = None
    snapshot_source: str = ""
    """An address or a command that returns the snapshot just before the run; empty to use `snapshot`."""
    descriptions: ToolDescriptions | None = None
    """Texts that the proxy of an MCP server puts in place of the server's own."""
    surface: str = ""
    """The hash of what the MCP servers under test show, as of preparation (`ToolHelp`)."""
    packages: dict[str, int] = {}
    """Bytes of the packages that the command of an MCP server fetched before the run, by the server's name."""
    registry_source: str = ""
    """An address or a command that returns the registry, likewise."""

    def without_looks(self) -> RunOptions:
        """Return the options of a run that repeats trials of this one once."""
        plain = {"until_decided": False, "max_trials": None, "looks_with": None, "is_old_side": False}
        return self.model_copy(update=plain)

    def agent_seconds(self, of_scenario: float | None) -> float:
        """Return an agent's time limit: the scenario's, else the request's; the target may have a shorter one."""
        return of_scenario or self.timeout_seconds or DEFAULT_SECONDS


class Selection(BaseModel):
    """The selected scenarios of a suite version: those that meet all conditions."""

    model_config = ConfigDict(frozen=True)

    tags: tuple[str, ...] = ()
    """Each entry is a comma-separated list; a scenario needs one tag of every entry."""
    tier: int | None = Field(default=None, ge=0)
    """Scenarios up to and including this tier."""
    only: tuple[str, ...] = ()
    """Keys."""
    shard: tuple[int, int] = (1, 1)
    """Which part of what meets the other conditions, and how many parts there are."""

    def takes(self, *, key: str, tags: tuple[str, ...], tier: int) -> bool:
        """Return whether a scenario is selected."""
        if self.only and key not in self.only:
            return False
        if self.tier is not None and tier > self.tier:
            return False
        return all({word.strip() for word in entry.split(",")} & set(tags) for entry in self.tags)
