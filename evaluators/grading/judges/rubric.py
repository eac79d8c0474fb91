"""Rubrics, and when a judge uses them."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from evaluators.model import Amount, Text, Value

PREFIX = "evalhub:"
"""`rubric: evalhub:guidance` in a scenario names a shipped rubric."""


REASONS = "reasons"
"""The optional field of a judge's answer with a reason for each criterion; `require_fields` asks for it."""
DEFAULT_THRESHOLD = 0.7
"""For a rubric on scenarios without a judge of their own."""


def hash_of(text: str) -> str:
    """Return the hash of a rubric's or prompt's text, short enough to read."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Criterion(Value):
    """One weighted criterion of a rubric."""

    id: Text
    """The criterion's name in the judge's answer."""
    weight: Amount
    """Its share of the score; all add up to 1."""
    description: str = ""
    """What the judge checks."""


class RubricCriteria(Value):
    """Weighted criteria for a judge; weights stay as written and are normalized on use."""

    name: str = ""
    criteria: tuple[Criterion, ...]
    require_fields: tuple[str, ...] = ()
    form: Literal["scores", "statements"] = "scores"
    """Whether each criterion gets a score, or is a statement that holds or doesn't; the share that hold is the score."""
    expected: str = ""
    """What success looks like, for a judge of statements."""

    @property
    def short_hash(self) -> str:
        """The hash of what the judge is asked: criteria with weights and descriptions, not the name."""
        asked = "\n".join(f"{one.id}\t{one.weight!r}\t{one.description}" for one in self.criteria)
        if self.form == "statements":
            return hash_of(f"{asked}\n{self.form}\n{self.expected}")
        return hash_of(f"{asked}\n{REASONS}" if self.asks_reasons else asked)

    @property
    def asks_reasons(self) -> bool:
        """Whether the judge is asked for a reason for each criterion."""
        return REASONS in self.require_fields


class JudgeCriteria(Value):
    """The judge of a scenario (`evaluation.judge`)."""

    enabled: bool = True
    """Whether the judge is asked; one that is off needs no rubric."""
    rubric: RubricCriteria
    pass_threshold: float
    model: str = ""
    """A target's name or a model; empty for the project's."""
    when: Literal["always", "gates_pass"] = "always"
    """`gates_pass` saves the cost of judging trials that failed."""
    judgings: Annotated[int, Field(ge=1, le=20)] = 1
    """Calls of the judge for each trial; their mean counts."""
    on_mismatch: Literal["warn", "error"] = "warn"
    """Whether an answer whose total contradicts its weighted criteria counts by its total, or is unusable."""


READY = {
    "guidance": RubricCriteria(
        name="evalhub:guidance",
        require_fields=("scores", "weighted_score", "confidence", "issues", "highlights", REASONS),
        criteria=(
            Criterion(
                id="documentation_sufficiency",
                weight=0.5,
                description="Did the LLM appear to have sufficient information from the provided documentation to "
                "complete the task without confusion?",
            ),
            Criterion(
                id="workflow_clarity",
                weight=0.5,
                description="Did the LLM follow a logical workflow, or did it seem to discover the correct approach "
                "through trial and error?",
            ),
        ),
    )
}
"""Criteria of llm-tool-test's evaluation for guidance authors."""
