"""What a request for runs may ask for, beyond what and on what."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from evaluators.model import Json

DEFAULT_SECONDS = 300.0
"""Time limit of an agent where neither scenario, request nor target has one (that of llm-tool-test)."""


class RunOptions(BaseModel):
    """Kept with the run as JSON, so that every worker reads the same. Times in seconds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    trials: int = Field(default=1, ge=1, le=1000)
    concurrency: int | None = Field(default=None, ge=1, le=1000)
    """None takes the target's `workers`, else 1."""
    timeout_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """For scenarios that have no limit of their own."""
    judge: bool = True
    judge_model: str = ""
    """A target's name or a model id; empty is the judge's default."""
    threshold: float | None = Field(default=None, ge=0, le=1)
    """The least aggregate of evaluators with which a trial passes, in place of the suite's own."""
    baseline: str = ""
    """A run's number, `last-pass`, or empty for what is pinned."""
    seed: Json = None
    snapshot: Json = None
    registry: Json = None
    snapshot_source: str = ""
    """An address or a command that gives the snapshot just before the run; empty for `snapshot` as it is."""
    registry_source: str = ""
    """An address or a command that gives the registry, likewise."""

    def agent_seconds(self, of_scenario: float | None) -> float:
        """Return an agent's time limit: the scenario's, else the request's; the target may have a tighter one."""
        return of_scenario or self.timeout_seconds or DEFAULT_SECONDS


class Selection(BaseModel):
    """Which scenarios of a suite version take part: all conditions hold."""

    model_config = ConfigDict(frozen=True)

    tags: tuple[str, ...] = ()
    """Each entry is a comma list of which one must be there; every entry must hold."""
    tier: int | None = Field(default=None, ge=0)
    """Scenarios up to and including this tier."""
    only: tuple[str, ...] = ()
    """Keys."""

    def takes(self, *, key: str, tags: tuple[str, ...], tier: int) -> bool:
        """Tell whether a scenario takes part."""
        if self.only and key not in self.only:
            return False
        if self.tier is not None and tier > self.tier:
            return False
        return all({word.strip() for word in entry.split(",")} & set(tags) for entry in self.tags)
