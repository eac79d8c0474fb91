from __future__ import annotations

import pytest

from evaluators.grading.evaluate import (
    CompositeWeights,
    Criteria,
    compute_composite,
    decide_outcome,
    evaluate,
)
from evaluators.grading.gates.file_gates import FileExists
from evaluators.grading.judges.rubric import Criterion, JudgeCriteria, RubricCriteria
from evaluators.model import CommandResult, CompletionError, Outcome, Score
from evaluators.tool_use.tool import Tool
from tests.evaluators.agentv_samples import CASE
from tests.evaluators.samples import FakeModel, FakeWorkspace, events, evidence

PASSED = Score("gates", "file_exists", 1.0, True)
FAILED = Score("gates", "file_exists", 0.0, False)
NOT_RUN = Score("gates", "file_exists")
FIRST_TRY = Score("interaction", "first_try_success_rate", 0.8)
JUDGED = Score("judge", "judge", 0.6, True)
BROKEN = Score("judge", "judge", error="Down.")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((), "pass"),
        ((PASSED, FIRST_TRY), "pass"),
        ((PASSED, FAILED), "fail"),
        ((PASSED, BROKEN), "error"),
        ((FAILED, BROKEN), "fail"),
        ((NOT_RUN,), "pass"),
        ((Score("judge", "judge", 0.1, False), PASSED), "fail"),
    ],
)
@pytest.mark.spec("llm-tool-test", "Outcome by gates and judge")
@pytest.mark.spec("llm-tool-test", "No state that waits for a review")
def test_the_outcome(scores: tuple[Score, ...], expected: Outcome) -> None:
    assert decide_outcome(scores) == expected


@pytest.mark.parametrize(
    ("scores", "decided", "number", "layers"),
    [
        pytest.param((PASSED, JUDGED, FIRST_TRY), "pass", 0.35 + 0.33 + 0.08, {"gates", "judge", "interaction"}, id="all"),
        pytest.param((PASSED, FIRST_TRY), "pass", (0.35 + 0.08) / 0.45, {"gates", "interaction"}, id="no judge"),
        pytest.param((PASSED, NOT_RUN), "pass", 1.0, {"gates"}, id="a gate that was not run"),
        pytest.param((NOT_RUN, JUDGED), "pass", 0.6, {"judge"}, id="no gate that was run"),
        pytest.param((PASSED, FAILED, JUDGED), "fail", (0.175 + 0.33) / 0.9, {"gates", "judge"}, id="half the gates"),
        pytest.param((FAILED, BROKEN, FIRST_TRY), "fail", 0.08, {"gates", "judge", "interaction"}, id="broke and failed"),
        pytest.param((PASSED, BROKEN), "error", None, set(), id="error"),
        pytest.param((), "pass", None, set(), id="nothing applies"),
        pytest.param((Score("judge", "judge", 1.5, True),), "pass", 1.0, {"judge"}, id="clamped"),
    ],
)  # fmt: skip
@pytest.mark.spec("llm-tool-test", "Composite only on request, by weights")
def test_the_composite(
    scores: tuple[Score, ...], decided: Outcome, number: float | None, layers: set[str]
) -> None:
    found, weights = compute_composite(CompositeWeights(), scores, decided)
    assert found == (None if number is None else pytest.approx(number))
    assert set(weights) == layers
    assert not weights or sum(weights.values()) == pytest.approx(1.0)


@pytest.mark.spec("llm-tool-test", "Composite only on request, by weights")
def test_no_composite_unless_the_scenario_asks() -> None:
    assert compute_composite(None, (PASSED,), "pass") == (None, {})


def test_weights_of_nothing_give_no_composite() -> None:
    assert compute_composite(CompositeWeights(gate_weight=0), (PASSED,), "pass") == (None, {})


JUDGE = JudgeCriteria(rubric=RubricCriteria(criteria=(Criterion(id="a", weight=1),)), pass_threshold=0.5)
ANSWER = '{"scores": {"a": 0.5}, "weighted_score": 0.5, "confidence": 1, "issues": [], "highlights": []}'


EVERY_LAYER = {
    ("interaction", "completed"): 1.0,
    ("gates", "file_exists"): 1.0,
    ("assertions", "responseContains"): 1.0,
    ("evaluators", "expected_messages"): 0.5,
    ("scripts", "lines"): 0.25,
    ("judge", "judge"): 0.5,
}


def criteria(path: str) -> Criteria:
    return Criteria(
        tool=Tool(binary="t"), gates=(FileExists(path=path),), judge=JUDGE, composite=CompositeWeights()
    )


@pytest.mark.spec("llm-tool-test", "Layers are reported apart")
def test_it_runs_every_layer() -> None:
    given = evidence(
        events(("t add", 0)),
        workspace=FakeWorkspace({"a": ""}),
        tool=Tool(binary="t"),
        complete=FakeModel([ANSWER]),
    )
    done = evaluate(criteria("a"), given)
    assert (done.outcome, done.error) == ("pass", "")
    assert [score.layer for score in done.scores if score.passed is not None] == ["gates", "judge"]
    assert done.composite == pytest.approx(0.35 + 0.275 + 0.1)


def test_every_layer_gets_its_part_of_the_criteria() -> None:
    asked = Criteria.model_validate(
        {
            "gates": [{"type": "file_exists", "path": "a"}],
            "expect": {"response_contains": ["b"]},
            "evaluators": [{"type": "expected_messages"}],
            "threshold": 0.5,
            "expected_messages": [{"role": "assistant", "tool_calls": [{"tool": "bash"}, {"tool": "read"}]}],
            "scripts": [{"command": "run", "name": "lines"}],
            "judge": JUDGE,
        }
    )
    place = FakeWorkspace({"a": ""}, {"run": CommandResult(0, '{"score": 0.25}')})
    given = evidence(events(("t add", 0)), answer="abc", workspace=place, complete=FakeModel([ANSWER]))
    done = evaluate(asked, given)
    found = {(score.layer, score.name): score.value for score in done.scores}
    assert {name: found[name] for name in EVERY_LAYER} == EVERY_LAYER
    assert done.outcome == "pass"


def test_a_case_copies_the_criteria() -> None:
    case = Criteria(**CASE, input_files=("a.csv",), guidelines=("b.prompt.md",))
    assert (case.question, case.expected_outcome) == (CASE["question"], CASE["expected_outcome"])
    assert (case.reference_answer, case.input_files, case.guidelines) == ("42", ("a.csv",), ("b.prompt.md",))
    assert [message.role for message in (*case.input_messages, *case.expected_messages)] == [
        "user",
        "assistant",
    ]


@pytest.mark.parametrize(("path", "expected", "number"), [("a", "error", None), ("b", "fail", 0.0)])
def test_a_broken_layer_is_reported_in_a_failed_trial(path: str, expected: str, number: float | None) -> None:
    given = evidence(workspace=FakeWorkspace({"a": ""}), complete=FakeModel([CompletionError("Down.")]))
    done = evaluate(criteria(path), given)
    assert (done.outcome, done.error, done.composite) == (expected, "Down.", number)


def test_a_layer_sees_the_scores_before_it() -> None:
    seen: list[tuple[Score, ...]] = []

    def last(criteria: Criteria, evidence: object, so_far: tuple[Score, ...]) -> tuple[Score, ...]:
        seen.append(so_far)
        return ()

    evaluate(Criteria(), evidence(), [lambda criteria, evidence, so_far: (PASSED,), last])
    assert seen == [(PASSED,)]


@pytest.mark.parametrize(
    ("exit_code", "timed_out", "expected"),
    [(0, False, True), (1, False, False), (0, True, False), (None, False, False)],
)
@pytest.mark.spec("llm-tool-test", "Completed: exit code 0 before the time limit")
def test_completed_means_ended_by_itself_with_0(
    exit_code: int | None, timed_out: bool, expected: bool
) -> None:
    assert evidence(exit_code=exit_code, timed_out=timed_out).completed is expected


def test_a_first_try_success_that_is_not_measured_takes_no_part_in_the_composite():
    weights = CompositeWeights(gate_weight=0.5, judge_weight=0.3, interaction_weight=0.2)
    scores = (
        Score("interaction", "first_try_success_rate", None),
        Score("gates", "file_exists", 1.0, True),
        Score("judge", "judge", 0.5, True),
    )
    number, used = compute_composite(weights, scores, "pass")
    assert used == pytest.approx({"gates": 0.625, "judge": 0.375})
    assert number == pytest.approx(0.8125)
