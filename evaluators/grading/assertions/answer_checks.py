"""AgentV's deterministic checks of the answer: texts, a pattern, JSON, its fields (`field-accuracy`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from evaluators.grading.evaluator import (
    BaseEvaluator,
    Case,
    EvaluatorResult,
    Message,
    TrialEvidence,
    judged_answer,
)
from evaluators.grading.judges.rubric import first_object
from evaluators.json_values import NoJson, are_equal, strict_json
from evaluators.model import AS_TUPLE, CHECKED, Amount, Json, StrictModel, Text
from evaluators.patterns import WHITE_SPACE, PatternError, SlowPattern, compile_pattern
from evaluators.statistics.descriptive import weighted_mean
from evaluators.tool_use.mcp_arguments import check_schema, schema_violations

TextCheck = Literal[
    "contains",
    "contains-any",
    "contains-all",
    "icontains",
    "icontains-any",
    "icontains-all",
    "starts-with",
    "ends-with",
    "equals",
]
"""How an answer is compared with texts. Those with `i` ignore case; the last three also white space at both ends."""


class AnswerText(BaseEvaluator):
    """Compare the answer with one or several texts; any of them is enough, except for the `-all` checks."""

    type: TextCheck
    value: Annotated[tuple[Text, ...], Field(min_length=1), AS_TUPLE]

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        answer = judged_answer(evidence)
        holds = [
            _TESTS[self.type.removesuffix("-any").removesuffix("-all")](answer, text) for text in self.value
        ]
        met = all(holds) if self.type.endswith("-all") else any(holds)
        hits = [self._sentence(text) for text, one in zip(self.value, holds, strict=True) if one]
        misses = [
            self._sentence(text, "not ") for text, one in zip(self.value, holds, strict=True) if not one
        ]
        return EvaluatorResult(float(met), tuple(hits), () if met else tuple(misses))

    def _sentence(self, text: str, negation: str = "") -> str:
        return f"The answer {_VERBS[self.type.removesuffix('-any').removesuffix('-all')][bool(negation)]} '{text}'"


def _trim(text: str) -> str:
    return text.strip(WHITE_SPACE)


_TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda answer, text: text in answer,
    "icontains": lambda answer, text: text.lower() in answer.lower(),
    "starts-with": lambda answer, text: _trim(answer).startswith(_trim(text)),
    "ends-with": lambda answer, text: _trim(answer).endswith(_trim(text)),
    "equals": lambda answer, text: _trim(answer) == _trim(text),
}
_CONTAINS = ("contains", "does not contain")
_VERBS: dict[str, tuple[str, str]] = {
    "contains": _CONTAINS,
    "icontains": _CONTAINS,
    "starts-with": ("starts with", "does not start with"),
    "ends-with": ("ends with", "does not end with"),
    "equals": ("equals", "does not equal"),
}


class AnswerPattern(BaseEvaluator):
    """Search the answer for a regular expression, as JavaScript reads it."""

    type: Literal["regex"] = "regex"
    value: Text
    flags: str = Field(default="", pattern=r"^[gimsu]*$")

    @field_validator("flags")
    @classmethod
    def _compiles(cls, flags: str, info: ValidationInfo) -> str:
        if info.context != CHECKED and "value" in info.data:
            compile_pattern(pattern_text(info.data["value"], flags), javascript=True)
        return flags

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        shown = f"/{self.value}/{self.flags}"
        try:
            pattern = compile_pattern(pattern_text(self.value, self.flags), javascript=True)
            match = pattern.search(judged_answer(evidence))
        except SlowPattern as error:
            return EvaluatorResult(None, error=str(error))
        except PatternError as error:
            return EvaluatorResult(0.0, misses=(str(error),))
        if match:
            return EvaluatorResult(1.0, hits=(f"The answer matches {shown}",))
        return EvaluatorResult(0.0, misses=(f"The answer does not match {shown}",))


def pattern_text(value: str, flags: str) -> str:
    """Return a pattern with its flags within; `g` and `u` change nothing."""
    inline_flags = "".join(sorted(set(flags) & {"i", "m"}))
    # Without this flag a dot stops at the end of a line, in JavaScript at more of them than elsewhere.
    text = _with_dots_for_all(value) if "s" in flags else value
    return f"(?{inline_flags}:{text})" if inline_flags else text


def _with_dots_for_all(value: str) -> str:
    written, inside, escaped = [], False, False
    for one in value:
        written.append(r"[\s\S]" if one == "." and not inside and not escaped else one)
        if not escaped:
            inside = one != "]" if inside else one == "["
        escaped = one == "\\" and not escaped
    return "".join(written)


class AnswerJson(BaseEvaluator):
    """Check that the answer is JSON, and that it fits a JSON schema if one is given."""

    type: Literal["is-json", "json-schema"]
    value: dict[str, Json] | None = None
    """The schema."""

    @field_validator("value")
    @classmethod
    def _is_usable(cls, value: Json, info: ValidationInfo) -> Json:
        if value is not None and info.context != CHECKED:
            check_schema(value)
        return value

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
        try:
            answer = strict_json(judged_answer(evidence))
        except NoJson:
            return EvaluatorResult(0.0, misses=("The answer is not valid JSON",))
        if self.value is None:
            return EvaluatorResult(1.0, hits=("The answer is valid JSON",))
        try:
            wrong = schema_violations(self.value, answer)
        except ValueError as error:
            return EvaluatorResult(None, error=f"The JSON schema was not checked: {error}.")
        if wrong:
            return EvaluatorResult(0.0, misses=wrong)
        return EvaluatorResult(1.0, hits=("The answer fits the JSON schema",))


_PATH = re.compile(r"[^.\[\]]+")
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NUMERIC_DATE = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
_NAMED_DATE = re.compile(r"(\d{1,2})-([A-Za-z]{3,9})-(\d{4})")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MISSING = object()


class FieldCheck(StrictModel):
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

    def find(self, case: Case, evidence: TrialEvidence) -> EvaluatorResult:
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
    "exact": lambda field, wanted, actual: are_equal(wanted, actual),
    "numeric_tolerance": _within,
    "date": _same_date,
}


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
