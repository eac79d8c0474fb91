"""AgentV's deterministic checks of the answer: its text, a pattern, JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from evaluators.grading.evaluator import BaseEvaluator, Case, EvaluatorResult, judged_answer
from evaluators.grading.evidence import Evidence
from evaluators.js_text import WHITE_SPACE
from evaluators.json_values import NoJson, strict_json
from evaluators.model import AS_TUPLE, CHECKED, Json, Text
from evaluators.patterns import PatternError, SlowPattern, compile_pattern
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

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
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

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
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

    def find(self, case: Case, evidence: Evidence) -> EvaluatorResult:
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
