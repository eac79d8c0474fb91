"""The assertions of tool-forge's eval cases (`expect`), their facts and the verdict on a case: the first failure decides.

They are named after the keys of their file, which are in camel case there (tool-forge eval runner, Assertion Execution).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Struct
from pydantic import ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.template_tokens import TokenSources, resolve_tokens
from evaluators.model import AS_TUPLE, Amount, Json, StrictModel, Text, Transcript, Usage
from evaluators.patterns import WHITE_SPACE, PatternError, compile_pattern, string_of
from evaluators.tool_use.calls import Call, pair_calls


class AssertionResult(Struct, frozen=True):
    """The results of one key of `expect`, value by value."""

    key: str
    values: tuple[ValueResult, ...] = ()

    @property
    def passed(self) -> bool | None:
        """Whether it passed; None if every value was skipped or there was none."""
        states = {value.state for value in self.values}
        return False if "failed" in states else ("passed" in states or None)

    @property
    def failures(self) -> tuple[str, ...]:
        """Every failure, as written in `error`."""
        return tuple(f"{self.key}: {value.sentence}" for value in self.values if value.state == "failed")


class CaseVerdict(Struct, frozen=True):
    """The verdict on a case in an EvalSuiteResult."""

    passed: bool
    error: str = ""
    failed_assertion: str = ""
    assertions_run: int = 0
    """Keys with a checked value, up to and including the failed one."""
    assertions_skipped: int = 0
    """Values skipped before the first failure."""
    skipped_tokens: tuple[str, ...] = ()
    all_failures: tuple[str, ...] = ()
    """Includes failures after the first; for pages, not for the verdict."""
    warnings: tuple[str, ...] = ()
    vacuous: bool = False
    """It passed because nothing was checked."""


TIMED_OUT = CaseVerdict(passed=False, error="timeout", failed_assertion="timeout", all_failures=("timeout",))


def case_verdict(results: Sequence[AssertionResult]) -> CaseVerdict:
    """Return the verdict on a case from the results of its keys, in the contract's order."""
    run = 0
    skipped: list[tuple[str, ValueResult]] = []
    error = failed = ""
    for result in results:
        run += result.passed is not None
        for value in result.values:
            if value.state == "failed":
                error, failed = f"{result.key}: {value.sentence}", result.key
                break
            if value.state == "skipped":
                skipped.append((result.key, value))
        if error:
            break
    return CaseVerdict(
        passed=not error,
        error=error,
        failed_assertion=failed,
        assertions_run=run,
        assertions_skipped=len(skipped),
        skipped_tokens=tuple(token for _, value in skipped for token in value.tokens),
        all_failures=tuple(failure for result in results for failure in result.failures),
        warnings=tuple(f"{key}: {value.sentence}." for key, value in skipped),
        vacuous=not error and run == 0,
    )


CHARACTERS_PER_TOKEN = 4


class ToolCall(Struct, frozen=True):
    """One call of a tool, as the agent made it."""

    name: str
    params: dict[str, Json] = {}
    success: bool | None = None
    """None if not recorded."""
    seconds: float | None = None


class AnswerSize(Struct, frozen=True):
    """The size of an answer."""

    count: int
    source: Literal["usage", "tokenizer", "characters"]


class TrialFacts(Struct, frozen=True):
    """The facts about one trial."""

    answer: str = ""
    calls: tuple[ToolCall, ...] = ()
    duration_ms: float = 0.0
    usage: Usage | None = None
    sources: TokenSources = TokenSources()
    count_tokens: Callable[[str], int] | None = None
    executes_tools: bool = True
    """False for a model that only names the tools it would call."""

    @property
    def names(self) -> tuple[str, ...]:
        """Tool names in the order of calls."""
        return tuple(call.name for call in self.calls)

    @property
    def tokens(self) -> AnswerSize:
        """The answer's tokens: the endpoint's usage, else by the tokenizer, else characters / 4, rounded up."""
        if self.usage is not None and self.usage.output and not self.usage.estimated:
            return AnswerSize(self.usage.output, "usage")
        if self.count_tokens is not None:
            return AnswerSize(self.count_tokens(self.answer), "tokenizer")
        return AnswerSize(-(-len(self.answer) // CHARACTERS_PER_TOKEN), "characters")


class ValueResult(Struct, frozen=True):
    """The result for one value of an assertion."""

    state: Literal["passed", "failed", "skipped", "moot"]
    """A moot assertion has no meaning for this trial; it counts neither as run nor as skipped."""
    sentence: str = ""
    """Why it failed or was skipped, in the manner of the contract's samples: without a full stop."""
    tokens: tuple[str, ...] = ()
    """The unresolved tokens for which it was skipped."""
    hint: str = ""
    """A sentence that may help a person, and isn't part of the error."""


PASSED = ValueResult("passed")


def facts_of(evidence: TrialEvidence) -> TrialFacts:
    """Return the facts that assertions need from the evidence."""
    return TrialFacts(
        answer=evidence.answer,
        calls=calls_of_transcript(evidence.transcript),
        # Floating point: 2.3 s is 2300 ms, not 2299.9999999999995.
        duration_ms=round(evidence.seconds * 1000, 6),
        usage=evidence.usage,
        sources=TokenSources(evidence.seed, evidence.snapshot),
        count_tokens=evidence.count_tokens,
        executes_tools=evidence.executes_tools,
    )


def calls_of_transcript(transcript: Transcript) -> tuple[ToolCall, ...]:
    """Return the tool calls of a transcript in order, with the success from their results."""
    return tuple(map(_tool_call, pair_calls(transcript.events)))


def _tool_call(call: Call) -> ToolCall:
    params = call.event.input
    timed = call.result if call.result is not None and call.result.seconds is not None else call.event
    return ToolCall(
        call.event.name or "", params if isinstance(params, dict) else {}, _success(call), timed.seconds
    )


def _success(call: Call) -> bool | None:
    for event in (call.result, call.event):
        if event is not None and event.success is not None:
            return event.success
    return None if call.exit_code is None else call.exit_code == 0


def resolve_value(value: str, sources: TokenSources) -> Iterator[str | ValueResult]:
    """Yield the value with tokens replaced, or the reason to skip it."""
    resolved = resolve_tokens(value, sources)
    if resolved.text is None:
        yield ValueResult(
            "skipped",
            f"'{value}' was skipped: {', '.join(resolved.unresolved)} unresolved",
            resolved.unresolved,
        )
    elif not resolved.text:
        written = f"'{value}' resolves to an empty text" if value else "an empty text"
        yield ValueResult("skipped", f"{written} was skipped: every response contains it")
    else:
        yield resolved.text


def non_empty(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that the answer is more than white space."""
    if expect.response_non_empty:
        yield PASSED if facts.answer.strip(WHITE_SPACE) else ValueResult("failed", "the response is empty")


def check_contains(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that the answer contains each text, case-sensitive."""
    for value in expect.response_contains or ():
        for text in resolve_value(value, facts.sources):
            yield text if isinstance(text, ValueResult) else _check_contains(text, facts.answer)


def contains_any(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that the answer contains at least one text of each group."""
    if expect.response_contains_any == ():
        yield ValueResult("skipped", "skipped: there is no group")
    for group in expect.response_contains_any or ():
        yield from _group(group, facts)


def not_contains(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that the answer contains none of the texts."""
    for value in expect.response_not_contains or ():
        for text in resolve_value(value, facts.sources):
            if isinstance(text, ValueResult):
                yield text
            else:
                yield (
                    ValueResult("failed", f"found {_quote(text)} in response")
                    if text in facts.answer
                    else PASSED
                )


def matches(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check that each pattern matches anywhere in the answer."""
    for pattern in expect.response_matches or ():
        yield _check_matches(pattern, facts.answer)


def _check_contains(text: str, answer: str) -> ValueResult:
    if text in answer:
        return PASSED
    return ValueResult(
        "failed", f"expected '{text}' in response but not found", hint=_case_hint(text, answer)
    )


def _group(group: tuple[str, ...], facts: TrialFacts) -> Iterator[ValueResult]:
    texts: list[str] = []
    for value in group:
        for text in resolve_value(value, facts.sources):
            if isinstance(text, ValueResult):
                yield text
            else:
                texts.append(text)
    if not group:
        yield ValueResult("skipped", "an empty group was skipped")
    elif texts and any(text in facts.answer for text in texts):
        yield PASSED
    elif texts:
        expected = ", ".join(f"'{text}'" for text in texts)
        hint = next(filter(None, (_case_hint(text, facts.answer) for text in texts)), "")
        yield ValueResult("failed", f"expected one of {expected} in response but none found", hint=hint)


def _check_matches(pattern: str, answer: str) -> ValueResult:
    if not pattern:
        return ValueResult("skipped", "an empty pattern was skipped: it matches every response")
    try:
        match = compile_pattern(pattern, javascript=True).search(answer)
    except PatternError as error:
        return ValueResult("failed", f"invalid regex: {str(error).rstrip('.')}")
    return PASSED if match else ValueResult("failed", f"'{pattern}' does not match the response")


def _case_hint(text: str, answer: str) -> str:
    """Explain failures of suites that were written for case-insensitive runners."""
    return f"The response contains '{text}' in another case." if text.lower() in answer.lower() else ""


def latency(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check the time from the message to the complete answer; 0 is a valid limit."""
    bound = expect.max_latency_ms
    if bound is None:
        return
    took = string_of(facts.duration_ms)
    in_time = facts.duration_ms <= bound
    yield PASSED if in_time else ValueResult("failed", f"took {took}ms, more than {string_of(bound)}ms")


def check_tokens(expect: Expect, facts: TrialFacts) -> Iterator[ValueResult]:
    """Check the answer's number of tokens."""
    bound = expect.max_tokens
    if bound is None:
        return
    size = facts.tokens
    sentence = f"{size.count} tokens (by {size.source}), more than {string_of(bound)}"
    yield PASSED if size.count <= bound else ValueResult("failed", sentence)


def _quote(text: str) -> str:
    """Return the text in the quotes that it doesn't have itself."""
    return f"'{text}'" if '"' in text else f'"{text}"'


Names = Annotated[tuple[Text, ...], AS_TUPLE]
Texts = Annotated[tuple[str, ...], AS_TUPLE]

WITHOUT_VALUE: frozenset[str] = frozenset(("exists", "notExists"))
"""Assertions on a parameter that need no value."""

NO_TOOLS = "__none__"
"""Means "no tools" in `toolsAcceptable`."""


class ToolParam(StrictModel):
    """One assertion on one parameter of the first call of a tool."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    tool: Text
    param: Text = Field(alias="paramName")
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: str | tuple[str, ...] = ""
    """Several values only for `oneOf`; tokens are not replaced yet."""

    @field_validator("value", mode="before", json_schema_input_type=Json)
    @classmethod
    def _as_texts(cls, value: Json, info: ValidationInfo) -> str | tuple[str, ...]:
        assertion = info.data.get("assertion")
        if assertion == "oneOf" and isinstance(value, list | tuple):
            return tuple(map(string_of, value))
        return "" if assertion in WITHOUT_VALUE else string_of(value)


class Expect(StrictModel):
    """Every assertion of the contract in its order. None means the key is missing or off.

    An empty list asserts too: `tools_called=()` allows no call.
    """

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)

    tools_called: Names | None = None
    """Exactly these calls, in this order, as often as listed; an empty list means no call."""
    tools_acceptable: Annotated[tuple[Names, ...], AS_TUPLE] | None = None
    """Sets of tools; the called tools must equal one of them, in any order and number."""
    tools_not_called: Names | None = None
    """Tools that must not be called."""
    tool_params: Annotated[tuple[ToolParam, ...], AS_TUPLE] | None = None
    """Assertions on arguments of calls."""
    no_tool_errors: bool = False
    """Whether no call may fail."""
    response_non_empty: bool = False
    """Whether the answer must be more than white space."""
    response_contains: Texts | None = None
    """Texts that the answer contains, all of them."""
    response_contains_any: Annotated[tuple[Texts, ...], AS_TUPLE] | None = None
    """Groups of texts; of each the answer contains one."""
    response_not_contains: Texts | None = None
    """Texts that the answer must not contain."""
    response_matches: Texts | None = None
    """Regular expressions that match the answer, all of them."""
    max_latency_ms: Amount | None = None
    """The longest time from the message to the complete answer, in milliseconds."""
    max_tokens: Amount | None = None
    """The most tokens that the agent may use."""
    stubs: SkipJsonSchema[tuple[str, ...] | None] = None
    """Stubbed tools; None outside stub mode, an empty list in stub mode without stubs."""

    @property
    def names_tools(self) -> bool:
        """Whether a case asserts which tools are called, or how."""
        named = (self.tools_called, self.tools_acceptable, self.tools_not_called, self.tool_params)
        return any(each is not None for each in named)

    @property
    def asserted(self) -> int:
        """The number of assertions; stubs do not count."""
        return sum(value is not None and value is not False for name, value in self if name != "stubs")
