"""Rubrics, and when a judge uses them."""

from __future__ import annotations

from typing import Literal

from evaluators.values import Value


class Criterion(Value):
    """One weighted criterion of a rubric."""

    id: str
    weight: float
    description: str = ""


class Rubric(Value):
    """Weighted criteria for a judge; weights stay as written and are normalized on use."""

    name: str = ""
    criteria: tuple[Criterion, ...]
    require_fields: tuple[str, ...] = ()


class JudgeCriteria(Value):
    """The judge of a scenario (`evaluation.judge`)."""

    enabled: bool = True
    rubric: Rubric
    pass_threshold: float
    model: str = ""
    when: Literal["always", "gates_pass"] = "always"
    judgings: int = 1
