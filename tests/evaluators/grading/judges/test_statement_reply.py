"""A rubric of statements: each holds or doesn't, with evidence; the share of those that hold is the score."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.grading.judges.rubric import BadReply, Criterion, JudgeCriteria, RubricCriteria
from evaluators.grading.judges.rubric_judge import read_statements, rubric_prompt, score_with_judge
from tests.evaluators.samples import FakeModel, events, evidence

RUBRIC = RubricCriteria(
    form="statements",
    expected="A note titled X exists.",
    criteria=(
        Criterion(id="ran_add", weight=1.0, description="The agent ran notetool add."),
        Criterion(id="said_so", weight=1.0, description="The answer names the note."),
        Criterion(id="no_help", weight=1.0, description="It read no help page."),
    ),
)


def decided(*holds: bool, **changes: Any) -> dict[str, Any]:
    listed = [
        {"number": number, "evidence": f"Event {number}.", "holds": each}
        for number, each in enumerate(holds, start=1)
    ]
    return {"statements": listed, "confidence": 0.9, **changes}


def judged(*answers: dict[str, Any], **changes: Any) -> dict[str, list[Any]]:
    model = FakeModel([json.dumps(each) for each in answers])
    criteria = JudgeCriteria(**{"rubric": RUBRIC, "pass_threshold": 1.0, **changes})
    found: dict[str, list[Any]] = {}
    for score in score_with_judge(criteria, evidence(events(("t add", 0)), complete=model), ()):
        found.setdefault(score.name, []).append(score)
    return found


@pytest.mark.parametrize(
    ("holds", "share", "passed"),
    [
        ((True, True, True), 1.0, True),
        ((True, False, True), 2 / 3, False),
        ((False, False, False), 0.0, False),
    ],
)
def test_a_trial_passes_when_all_its_statements_hold(holds, share, passed):
    (verdict,) = judged(decided(*holds))["judge"]
    assert verdict.value == pytest.approx(share)
    assert verdict.passed is passed


def test_the_share_of_three_judgings_passes_only_if_all_hold_in_each():
    (verdict,) = judged(
        decided(True, True, True), decided(True, True, True), decided(True, True, False), judgings=3
    )["judge"]
    assert verdict.value == pytest.approx(8 / 9)
    assert verdict.passed is False


def test_each_statement_has_a_score_and_its_evidence():
    found = judged(decided(True, False, True))
    judging = found["judging"][0].judging
    assert [found[f"criterion.{one.id}"][0].value for one in RUBRIC.criteria] == [1.0, 0.0, 1.0]
    assert judging.reasons == {"ran_add": "Event 1.", "said_so": "Event 2.", "no_help": "Event 3."}
    assert judging.negatives == ("Doesn't hold: The answer names the note.",)
    assert judging.recomputed is None
    assert not judging.mismatch


def test_the_prompt_numbers_the_statements_and_says_what_success_looks_like():
    prompt = rubric_prompt(RUBRIC, evidence(events(("t add", 0)), prompt="Add X"))
    assert "2. The answer names the note." in prompt
    assert "A note titled X exists." in prompt
    assert "weighted_score" not in prompt


def test_a_statement_without_a_decision_is_asked_for_again():
    found = judged(decided(True, True), decided(True, True, True))
    assert found["judge"][0].passed is True
    assert found["judging"][0].judging.repaired


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("none", "The answer contains no JSON object."),
        ('{"statements": {"1": true}}', "'statements' must be a list with one object for each statement."),
        (json.dumps(decided(True, True)), "The answer decides nothing about statement 3."),
        (
            json.dumps({"statements": [{"number": 2, "holds": "partly"}]}),
            "'holds' of statement 2 is neither true nor false.",
        ),
    ],
)
def test_an_unusable_answer_says_why(answer, sentence):
    with pytest.raises(BadReply) as caught:
        read_statements(answer, RUBRIC)
    assert str(caught.value) == sentence


def test_numbers_as_text_and_copied_placeholders_are_read():
    listed = [{"number": str(number), "evidence": "<what shows it>", "holds": True} for number in (1, 2, 3)]
    found = read_statements(json.dumps({"statements": listed, "confidence": "high"}), RUBRIC)
    assert (found.weighted_score, found.reasons, found.confidence) == (1.0, {}, None)


def test_the_hash_follows_the_statements_and_what_success_looks_like():
    changed = RUBRIC.model_copy(update={"expected": "Two notes exist."})
    scored = RUBRIC.model_copy(update={"form": "scores"})
    assert len({RUBRIC.short_hash, changed.short_hash, scored.short_hash}) == 3
