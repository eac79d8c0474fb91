"""Plan the generated history: the order of runs and their agents' skill. Pure and deterministic by seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from tests.history.catalogue import SCENARIOS, TARGETS, TOOLS

TOOL_VERSIONS = ("2.1.0", "2.2.0", "2.3.0", "2.3.1", "2.4.0", "3.0.0")
TOOL_STEPS = (0.0, 0.2, 0.35, 0.4, -0.5, 0.3)
"""Effect of each tool version on the odds, in logits; 2.4.0 renamed a flag."""
GUIDANCE_STEPS = (-0.6, -0.2, 0.1, 0.35, 0.3, 0.7, 0.15, 0.9)
"""Effect of each guide revision on the odds, in logits; the seventh lost a section."""
RUNS_A_DAY = 9


@dataclass(frozen=True)
class Chapter:
    """One planned run."""

    number: int
    tool: int
    """Index in `TOOLS`."""
    target: int
    version: int
    """Of the suite: 1 or 2."""
    guidance: int
    """Index in `GUIDANCE_STEPS`."""
    tool_version: str
    created: datetime
    skill: float
    """Log odds that an average scenario passes."""


def chapters(runs: int, *, seed: int, now: datetime) -> Iterator[Chapter]:
    """Yield the runs, oldest first; the last is an hour before `now`."""
    rng = Random(seed)
    lines = [(tool, target) for tool in range(len(TOOLS)) for target in range(len(TARGETS))]
    for number in range(runs):
        tool, target = lines[number % len(lines)]
        passed = number / max(runs, 1)
        release = _place(passed, len(TOOL_STEPS))
        revision = _place(passed, len(GUIDANCE_STEPS))
        yield Chapter(
            number=number,
            tool=tool,
            target=target,
            version=1 if passed < 0.6 else 2,
            guidance=revision,
            tool_version=f"{TOOLS[tool].binary} {TOOL_VERSIONS[release]}",
            created=now - timedelta(hours=1 + (runs - 1 - number) * 24 / RUNS_A_DAY),
            skill=_skill(tool, target, release, revision, passed) + rng.gauss(0.0, 0.25),
        )


def _place(passed: float, steps: int) -> int:
    return min(int(passed * steps), steps - 1)


def _skill(tool: int, target: int, release: int, revision: int, passed: float) -> float:
    drift = 0.4 * passed + 0.2 * math.sin(9 * passed + tool)
    return 0.6 + TARGETS[target][2] + TOOL_STEPS[release] + GUIDANCE_STEPS[revision] + drift - 0.15 * tool


def difficulties(tool: int, *, seed: int) -> list[float]:
    """Return each scenario's difficulty in logits; a few are hopeless, many easy."""
    rng = Random(seed * 31 + tool)
    return [rng.gauss(0.0, 1.3) for _ in range(SCENARIOS)]


def chance(skill: float, difficulty: float) -> float:
    """Return the probability of passing."""
    return 1.0 / (1.0 + math.exp(difficulty - skill))
