"""Statements about a single criterion, and reasons in a judge's answer."""

from __future__ import annotations

import json

import pytest

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.judges.rubric import READY, BadReply, Criterion, RubricCriteria, read_reply
from evaluators.grading.judges.rubric_judge import rubric_prompt
from evaluators.model import Transcript
from runs.review.statement_groups import names

PLAIN = RubricCriteria(criteria=(Criterion(id="task", weight=1.0), Criterion(id="style", weight=1.0)))
ASKING = PLAIN.model_copy(update={"require_fields": ("scores", "reasons")})


@pytest.mark.parametrize(
    ("text", "criterion", "expected"),
    [
        ("[task] Forgot the header.", "task", True),
        ("Task: forgot the header.", "task", True),
        ("`task`: forgot it.", "task", True),
        ("Completed the task.", "task", False),
        ("The workflow clarity was low.", "workflow_clarity", True),
        ("Low workflow_clarity.", "workflow_clarity", True),
        ("workflow_clarityx", "workflow_clarity", False),
        ("Anything", "--", False),
    ],
)
def test_which_statements_name_a_criterion(text: str, criterion: str, expected: bool) -> None:
    assert names(text, criterion) is expected


def _answer(**more: object) -> str:
    given = {"scores": {"task": 1.0, "style": 0.5}, "weighted_score": 0.75, "confidence": 0.9}
    return json.dumps({**given, "issues": [], "highlights": [], **more})


def test_optional_reasons_are_kept() -> None:
    given = {"task": " Wrote it. ", "other": "Unknown.", "style": 3}
    assert read_reply(_answer(reasons=given), PLAIN).reasons == {"task": "Wrote it."}
    for odd in (None, "no map", []):
        assert read_reply(_answer(reasons=odd), PLAIN).reasons == {}


def test_a_rubric_can_require_reasons() -> None:
    with pytest.raises(BadReply, match="lacks reasons"):
        read_reply(_answer(), ASKING)
    assert read_reply(_answer(reasons={"task": "Fine."}), ASKING).reasons


def test_only_a_rubric_that_requires_reasons_asks() -> None:
    evidence = TrialEvidence(Transcript())
    assert '"reasons"' not in rubric_prompt(PLAIN, evidence)
    assert '"reasons": {"task": "<why, in one sentence>", "style"' in rubric_prompt(ASKING, evidence)
    assert PLAIN.short_hash != ASKING.short_hash
    assert READY["guidance"].asks_reasons
