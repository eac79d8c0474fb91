from __future__ import annotations

import json
import time
from typing import Any

import pytest

from evaluators.grading.judges.rubric import (
    BadReply,
    Criterion,
    RubricCriteria,
    first_object,
    read_reply,
    validated_reply,
)
from evaluators.grading.judges.rubric_judge import rubric_prompt
from tests.evaluators.samples import evidence
from tests.linear_time import assert_linear_time, quarter

pytestmark = pytest.mark.spec("llm-tool-test", "The judge's reply")

RUBRIC = RubricCriteria(
    criteria=(Criterion(id="a", weight=0.3), Criterion(id="b", weight=0.4), Criterion(id="c", weight=0.3))
)


def reply(**changes: Any) -> dict[str, Any]:
    return {
        "scores": {"a": 0.85, "b": 0.9, "c": 0.7},
        "weighted_score": 0.83,
        "confidence": 0.8,
        "issues": ["i"],
        "highlights": ["h"],
        **changes,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"a": 1}', {"a": 1}, id="whole"),
        pytest.param('Here:\n```json\n{"a": 1}\n```\nbye', {"a": 1}, id="fenced"),
        pytest.param('{"a": 1} and {"a": 2}', {"a": 1}, id="the first"),
        pytest.param('a {brace} then {"a": 1}', {"a": 1}, id="behind a brace"),
        pytest.param('{"a": NaN} {"a": Infinity} {"a": 1}', {"a": 1}, id="behind what no JSON has"),
        pytest.param("{'a': 1, b: 2,}", {"a": 1, "b": 2}, id="mended"),
        pytest.param('{"a": 1,', {"a": 1}, id="cut off"),
        pytest.param('{"a": 1, "b": 0.', {"a": 1, "b": ""}, id="cut off in a number"),
        pytest.param("no object", None, id="none"),
        pytest.param("[1]", None, id="list"),
        pytest.param("", None, id="empty"),
    ],
)
def test_it_finds_the_first_object(text: str, expected: Any) -> None:
    assert first_object(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('<think>{"a": 1}</think>{"a": 2}', {"a": 2}, id="a draft in thoughts"),
        pytest.param('<think>a</think> b <THINK>{"a": 1}</THINK>\n{"a": 2}', {"a": 2}, id="two blocks"),
        pytest.param('<think>{"a": 1}<think>b</think>{"a": 2}', {"a": 2}, id="a tag in thoughts"),
        pytest.param('<thinking>{"a": 1}</thinking>{"a": 2}', {"a": 2}, id="another tag"),
        pytest.param('so {"a": 1}\n</think>\n\n{"a": 2}', {"a": 2}, id="only the end of thoughts"),
        pytest.param('<think>{"a": 1}', None, id="only thoughts"),
        pytest.param(
            '{"a": "it wrote <think>", "b": 1}', {"a": "it wrote <think>", "b": 1}, id="a quoted tag"
        ),
        pytest.param('{"a": "</think> was left"}', {"a": "</think> was left"}, id="a quoted end"),
    ],
)
def test_it_skips_a_reasoning_models_thoughts(text: str, expected: Any) -> None:
    assert first_object(text) == expected


def test_the_first_answer_with_all_required_fields_counts() -> None:
    draft = {"scores": {"a": 0.1, "b": 0.1, "c": 0.1}, "weighted_score": 0.1}
    texts = [json.dumps(each) for each in (draft, reply(), reply(weighted_score=0.2))]
    assert read_reply("\n".join(texts), RUBRIC).weighted_score == 0.83


def test_a_draft_alone_is_an_incomplete_answer() -> None:
    with pytest.raises(BadReply, match="The answer lacks weighted_score, confidence, issues, highlights"):
        read_reply('{"scores": {"a": 0.1}} and {"note": 1}', RUBRIC)


@pytest.mark.sampled(2)
@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    ["{" * 50_000, '{"a":' * 5_000, '{"a": "' + "{" * 50_000, "<think>" * 200_000, "x</think>\n" * 200_000],
)
def test_hostile_answers_take_linear_time(text: str) -> None:
    assert_linear_time(first_object, quarter(text), text)


@pytest.mark.sampled(1)
@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a":["' + '"a":' * 50_000, id="keys in a list"),
        pytest.param('{"a":[1,"b" ' + 'a"b' * 60_000, id="quotes in a list"),
        pytest.param('{"a" ' + '..."' * 50_000, id="quotes without a colon"),
        pytest.param('{"a":' + "(" * 199_000, id="parentheses"),
    ],
)
def test_answers_that_take_the_square_of_their_length_are_not_repaired(text: str) -> None:
    first_object("{'a': 1}")
    started = time.thread_time()
    assert first_object(text) is None
    assert time.thread_time() - started < 10


def test_a_long_broken_answer_is_repaired() -> None:
    reasons = [
        f'"c{n}": "It said "do {n}" and ran the \'x\' command, which failed: see `y`."' for n in range(200)
    ]
    found = first_object("{'scores': {'a': 0.5}, 'reasons': {" + ", ".join(reasons))
    assert found is not None
    assert found["scores"] == {"a": 0.5}


def test_reported_and_computed_score_are_both_stored() -> None:
    found = validated_reply(reply(), RUBRIC)
    assert (found.weighted_score, found.mismatch, found.missing) == (0.83, False, ())
    assert found.recomputed == pytest.approx(0.825)


@pytest.mark.parametrize(("reported", "mismatch"), [(0.845, False), (0.846, True), (0.5, True)])
def test_a_difference_above_two_hundredths_is_flagged(reported: float, mismatch: bool) -> None:
    assert validated_reply(reply(weighted_score=reported), RUBRIC).mismatch is mismatch


def test_missing_criteria_are_listed_and_weights_scaled() -> None:
    found = validated_reply(reply(scores={"a": 1.0, "b": 0.3}), RUBRIC)
    assert found.missing == ("c",)
    assert found.recomputed == pytest.approx(0.6)


def test_other_criteria_are_left_out_with_a_warning() -> None:
    found = validated_reply(reply(scores={"a": 1, "b": 1, "c": 1, "z": 7}), RUBRIC)
    assert set(found.scores) == {"a", "b", "c"}
    assert found.warnings == ("'z' is not a criterion of the rubric and was ignored.",)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"scores": {"a": 4}}, "'scores.a' is 4, outside 0 to 1"),
        ({"scores": {"a": -0.1}}, "outside 0 to 1"),
        ({"scores": {"a": float("nan")}}, "outside 0 to 1"),
        ({"scores": {"a": "1"}}, "'scores.a' is not a number"),
        ({"scores": {"a": True}}, "'scores.a' is not a number"),
        ({"scores": [1]}, "'scores' must map criteria to numbers"),
        ({"scores": {"z": 1}}, "No criterion has a score: a, b, c"),
        ({"weighted_score": 1.2}, "'weighted_score' is 1.2"),
        ({"weighted_score": None}, "lacks weighted_score"),
        ({"confidence": None, "issues": None}, "lacks confidence, issues"),
        ({"issues": 3}, "'issues' is not a list"),
        ({"issues": ["<one sentence each>"]}, "'issues' repeats the placeholder"),
        ({"scores": {"a": 1, "issues": []}, "issues": None}, "'issues' belongs next to 'scores', not in it"),
        (
            {"scores": {"a": 2}, "weighted_score": "x", "confidence": None, "issues": 3},
            "lacks confidence.*scores.a.*ted_score.*issues",
        ),
    ],
)
def test_it_refuses_answers_that_do_not_fit_the_rubric(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadReply, match=complaint):
        read_reply(json.dumps(reply(**changes)), RUBRIC)


USABLE = json.dumps(reply(scores={"a": 0.8, "b": 0.6, "c": 0.5}, issues=["It is slow."]))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("Happy to help! Please paste the transcript, and I will rate it.", "no JSON object", id="asks back"),
        pytest.param('```json\n{"scores": {"a": <0.0 to 1.0>, "b": <0.0 to 1.0>}, "weighted_score": <weighted>}\n```', "lacks confidence, issues, highlights. 'scores.a' is not a number", id="repeats the shape"),
        pytest.param(USABLE[: USABLE.index('"issues"')], "lacks issues", id="cut off"),
        pytest.param(json.dumps({"final": USABLE}), "lacks scores", id="answers in a text"),
        pytest.param('{"pass": true, "score": 0.8, "reason": "Good."}', "lacks scores", id="own fields"),
        pytest.param(USABLE.replace("0.8", '"high"'), "'scores.a' is not a number", id="words for numbers"),
        pytest.param(USABLE.replace('"a"', '"Quality"').replace('"b"', '"Brevity"').replace('"c"', '"Tone"'), "No criterion has", id="other criteria"),
        pytest.param('{"scores": [0.8, 0.6], "weighted_score": 0.7, "confidence": 1, "issues": [], "highlights": []}', "must map criteria to numbers", id="a list of scores"),
    ],
)  # fmt: skip
def test_it_refuses_shapes_that_users_of_other_judges_report_of_small_models(
    text: str, complaint: str
) -> None:
    with pytest.raises(BadReply, match=complaint):
        read_reply(text, RUBRIC)


@pytest.mark.parametrize("fields", [(), ("scores",)], ids=["all", "scores alone"])
def test_no_score_is_invented_where_a_reply_is_cut(fields: tuple[str, ...]) -> None:
    rubric, whole = RubricCriteria(criteria=RUBRIC.criteria, require_fields=fields), json.dumps(reply())
    for length in range(len(whole)):
        try:
            found = read_reply(whole[:length], rubric)
        except BadReply:
            continue
        assert (found.scores, found.weighted_score) == ({"a": 0.85, "b": 0.9, "c": 0.7}, 0.83)
        assert found.confidence in (None, 0.8)
        assert "" not in found.issues + found.highlights


@pytest.mark.parametrize("fields", [(), ("scores",)], ids=["all", "scores alone"])
@pytest.mark.parametrize("cut", [0, 1, 60, 200])
def test_no_score_is_read_from_the_prompt_itself(fields: tuple[str, ...], cut: int) -> None:
    rubric = RubricCriteria(criteria=RUBRIC.criteria, require_fields=fields)
    prompt = rubric_prompt(rubric, evidence(prompt="Add {x}."))
    with pytest.raises(BadReply) as refused:
        read_reply(prompt[: len(prompt) - cut], rubric)
    assert not refused.value.scored


def test_placeholders_are_no_reasons() -> None:
    found = validated_reply(reply(reasons={"a": "<why, in one sentence>", "b": "Good."}), RUBRIC)
    assert found.reasons == {"b": "Good."}


def test_a_rubric_may_ask_for_less() -> None:
    lenient = RubricCriteria(criteria=RUBRIC.criteria, require_fields=("scores",))
    found = validated_reply(
        {"scores": {"a": 1, "b": 1, "c": 1}, "weighted_score": 1, "issues": "one"}, lenient
    )
    assert (found.confidence, found.issues, found.highlights) == (None, ("one",), ())


def test_it_reports_a_missing_object() -> None:
    with pytest.raises(BadReply, match="no JSON object"):
        read_reply("I cannot judge this.", RUBRIC)
