"""Read the answer of a judge of statements: whether each holds, with its evidence."""

from __future__ import annotations

from msgspec import Struct

from evaluators.grading.judges.rubric import RubricCriteria
from evaluators.grading.judges.rubric_reply import BadReply, RubricReply, first_object, is_placeholder
from evaluators.json_values import int_or_none
from evaluators.model import Json


class _Decided(Struct, frozen=True):
    """The judge's decision about one statement."""

    holds: bool
    evidence: str


def read_statements(text: str, rubric: RubricCriteria) -> RubricReply:
    """Return the answer in a text: 1 for each statement that holds, else 0, and the share of those that hold.

    Raises `BadReply` with all problems. A statement without a decision is one: a share of the others would hide it.
    """
    answer = first_object(text, repair=False, fields=("statements",)) or first_object(text)
    if answer is None:
        raise BadReply("The answer contains no JSON object.")
    problems: list[str] = []
    decided = _decisions(answer.get("statements"), len(rubric.criteria), problems)
    absent = [str(number) for number in range(1, len(rubric.criteria) + 1) if number not in decided]
    if absent and not problems:
        problems.append(f"The answer decides nothing about statement {', '.join(absent)}.")
    if problems:
        raise BadReply(" ".join(problems), scored=len(absent) < len(rubric.criteria))
    return _reply(rubric, decided, answer.get("confidence"))


def _decisions(statements: Json, count: int, problems: list[str]) -> dict[int, _Decided]:
    """Return the decisions by number; the first of each counts."""
    if not isinstance(statements, list):
        problems.append("'statements' must be a list with one object for each statement.")
        return {}
    decisions: dict[int, _Decided] = {}
    for item in statements:
        number = _number(item)
        if number is None or not 1 <= number <= count:
            continue
        if not isinstance(item.get("holds"), bool):
            problems.append(f"'holds' of statement {number} is neither true nor false.")
            continue
        why = item.get("evidence")
        evidence = why.strip() if isinstance(why, str) and not is_placeholder(why) else ""
        decisions.setdefault(number, _Decided(item["holds"], evidence))
    return decisions


def _number(item: Json) -> int | None:
    """Return a statement's number; small models write it as text."""
    number = item.get("number") if isinstance(item, dict) else None
    if isinstance(number, str) and number.strip().isascii() and number.strip().isdigit():
        # Longer texts of digits take long to convert.
        return int(number.strip()[:6])
    return int_or_none(number)


def _reply(rubric: RubricCriteria, decided: dict[int, _Decided], confidence: Json) -> RubricReply:
    by_id = {one.id: decided[number] for number, one in enumerate(rubric.criteria, start=1)}
    texts = {one.id: one.description for one in rubric.criteria}
    is_known = (
        isinstance(confidence, int | float) and not isinstance(confidence, bool) and 0 <= confidence <= 1
    )
    return RubricReply(
        scores={id: float(each.holds) for id, each in by_id.items()},
        weighted_score=sum(each.holds for each in by_id.values()) / len(by_id),
        confidence=float(confidence) if is_known else None,
        reasons={id: each.evidence for id, each in by_id.items() if each.evidence},
        issues=tuple(f"Doesn't hold: {texts[id]}" for id, each in by_id.items() if not each.holds),
    )
