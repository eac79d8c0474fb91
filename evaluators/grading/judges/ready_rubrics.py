"""Rubrics that ship with evalhub."""

from __future__ import annotations

from evaluators.grading.judges.rubric import REASONS, Criterion, RubricCriteria

PREFIX = "evalhub:"
"""`rubric: evalhub:guidance` in a scenario names a shipped rubric."""

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
