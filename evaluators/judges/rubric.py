"""What a judge judges by."""

from __future__ import annotations

from typing import Literal

from evaluators.values import Value


class Criterion(Value):
    """One line of a rubric."""

    id: str
    weight: float
    description: str = ""


class Rubric(Value):
    """Weighted criteria for a judge; weights are kept as written and normalised when used."""

    name: str = ""
    criteria: tuple[Criterion, ...]
    require_fields: tuple[str, ...] = ()


class JudgeCriteria(Value):
    """When and by what the judge judges (`evaluation.judge`)."""

    enabled: bool = True
    rubric: Rubric
    pass_threshold: float
    model: str = ""
    when: Literal["always", "gates_pass"] = "always"
    judgings: int = 1
