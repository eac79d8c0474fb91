"""Makes invocations of a scenario by keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runs.targets.providers.base import Invocation
from scenarios.spec import Cost, ScenarioSpec, TrialLimits


def invocation_of(
    prompt: str,
    key: str,
    workspace: Path,
    scratch: Path,
    timeout_seconds: float,
    *,
    max_turns: int | None = None,
    max_usd: float | None = None,
    stubs: dict[str, Any] | None = None,
    messages: tuple[Any, ...] = (),
    folder: str = "",
    **more: Any,
) -> Invocation:
    """Return the invocation of a scenario with these fields."""
    limits, cost = TrialLimits(max_turns=max_turns), Cost(max_usd=max_usd)
    spec = ScenarioSpec(
        key=key, prompt=prompt, limits=limits, cost=cost, stubs=stubs, messages=messages, folder=folder
    )
    return Invocation(prompt, spec, workspace, scratch, timeout_seconds, **more)
