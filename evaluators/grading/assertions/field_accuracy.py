"""AgentV's `field-accuracy`: compare fields of a JSON answer with those of the expected output."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, Message, judged_answer
from evaluators.grading.evidence import Evidence
from evaluators.grading.judges.rubric_reply import first_object
from evaluators.json_values import NoJson, equal, strict_json
from evaluators.model import AS_TUPLE, Amount, Json, Text, Value
from evaluators.statistics.descriptive import weighted_mean

_PATH = re.compile(r"[^.\[\]]+")
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NUMERIC_DATE = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
_NAMED_DATE = re.compile(r"(\d{1,2})-([A-Za-z]{3,9})-(\d{4})")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MISSING = object()


class FieldCheck(Value):
    """One field and how it is compared."""

    path: Text
    """Keys and indexes, such as `lines[0].amount`."""
    match: Literal["exact", "numeric_tolerance", "date"]
    required: bool = True
    """Whether a missing field counts as wrong; an optional one that is missing doesn't count."""
    weight: Amount = 1.0
    tolerance: Amount = 0.0
    relative: bool = False
    """Whether the tolerance is a share of the expected number."""
    formats: Annotated[tuple[Text, ...], AS_TUPLE] = ()
    """Formats of dates; they decide whether day or month comes first."""


class FieldAccuracy(BaseEvaluator):
    """The weight of right fields as a share of all; with `all_or_nothing` 1 or 0."""

    type: Literal["field-accuracy"] = "field-accuracy"
    fields: Annotated[tuple[FieldCheck, ...], Field(min_length=1), AS_TUPLE]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
        answer = _decode(judged_answer(evidence))
        expected = _expected_value(case.expected_messages)
        if answer is None:
            return EvaluatorResult(0.0, misses=("The answer contains no JSON object",))
        if expected is None:
            return EvaluatorResult(0.0, misses=("The expected output contains no JSON object",))
        checks = [(_check(field, answer, expected), field) for field in self.fields]
        hits = tuple(text for (held, text), _ in checks if held is not False)
        misses = tuple(text for (held, text), _ in checks if held is False)
        if self.aggregation == "all_or_nothing":
            return EvaluatorResult(float(not misses), hits, misses)
        counted = [(float(held), field.weight) for (held, _), field in checks if held is not None]
        return EvaluatorResult(weighted_mean(counted), hits, misses)


def _decode(text: str) -> Json:
    """Return the JSON of a text, or the first object in it; None without any."""
    try:
        return strict_json(text)
    except NoJson:
        return first_object(text, repair=False)


def _expected_value(messages: Sequence[Message]) -> Json:
    """Return the data of the last message of an assistant that has some."""
    for message in reversed(messages):
        content = message.content
        if message.role == "assistant" and content:
            value = _decode(content) if isinstance(content, str) else content
            if value is not None:
                return value
    return None


def _check(field: FieldCheck, answer: Json, expected: Json) -> tuple[bool | None, str]:
    """Return whether a field is right, None if it doesn't count, and a sentence."""
    wanted, actual = _value_at(expected, field.path), _value_at(answer, field.path)
    if wanted is _MISSING:
        return True, f"{field.path}: no expected value"
    if actual is _MISSING:
        return (False if field.required else None), f"{field.path}: missing"
    held = _COMPARISONS[field.match](field, wanted, actual)
    return held, f"{field.path}: {'right' if held else f'expected {_short(wanted)}, got {_short(actual)}'}"


def _value_at(value: Json, path: str) -> Json:
    for part in _PATH.findall(path):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _within(field: FieldCheck, wanted: Json, actual: Json) -> bool:
    """Return whether a number is within the field's tolerance of the expected one."""
    one, other = _number(wanted), _number(actual)
    if one is None or other is None:
        return False
    difference = abs(one - other)
    if field.relative and one:
        difference /= abs(one)
    return difference <= field.tolerance


def _number(value: Json) -> float | None:
    if isinstance(value, str) and (match := _NUMBER.match(value)):
        value = float(match[0])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _same_date(field: FieldCheck, wanted: Json, actual: Json) -> bool:
    one, other = _date(wanted, field.formats), _date(actual, field.formats)
    return one is not None and one == other


def _date(value: Json, formats: Sequence[str]) -> date | None:
    """Return the day of a date in ISO 8601, `15-JAN-2026`, or with day and month as numbers."""
    text = str(value).strip()
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        pass
    if match := _NAMED_DATE.fullmatch(text):
        month = match[2].lower()[:3]
        return _day(int(match[3]), _MONTHS.index(month) + 1, int(match[1])) if month in _MONTHS else None
    if match := _NUMERIC_DATE.fullmatch(text):
        first, second = int(match[1]), int(match[2])
        month, day = (second, first) if _day_first(first, formats) else (first, second)
        return _day(int(match[3]), month, day)
    return None


def _day_first(first: int, formats: Sequence[str]) -> bool:
    american = any("MM/DD" in each or "MM-DD" in each for each in formats)
    european = any("DD/MM" in each or "DD-MM" in each for each in formats)
    return european if american != european else first > 12


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


_COMPARISONS: Mapping[str, Callable[[FieldCheck, Json, Json], bool]] = {
    "exact": lambda field, wanted, actual: equal(wanted, actual),
    "numeric_tolerance": _within,
    "date": _same_date,
}


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
