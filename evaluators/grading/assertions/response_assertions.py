"""Assertions on the answer, its time and its size (tool-forge eval runner, Assertion Execution 4 to 9)."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.grading.assertions.expect import Expect
from evaluators.grading.assertions.trial_facts import PASSED, TrialFacts, ValueResult, resolve_value
from evaluators.js_text import WHITE_SPACE, string_of
from evaluators.patterns import PatternError, compile_pattern


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
