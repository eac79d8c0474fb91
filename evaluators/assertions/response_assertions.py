"""Assertions on the text of the answer (tool-forge eval runner, Assertion Execution 4 to 7)."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.assertions.expect import Expect
from evaluators.assertions.trial_facts import HELD, Facts, ValueResult, resolved
from evaluators.js_text import WHITE_SPACE, string_of
from evaluators.patterns import PatternError, compile_pattern


def non_empty(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The answer holds more than white space."""
    if expect.response_non_empty:
        yield HELD if facts.answer.strip(WHITE_SPACE) else ValueResult("failed", "the response is empty")


def contains(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The answer contains each text, as it is written."""
    for value in expect.response_contains or ():
        for text in resolved(value, facts.sources):
            yield text if isinstance(text, ValueResult) else _contained(text, facts.answer)


def contains_any(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The answer contains at least one text of each group."""
    if expect.response_contains_any == ():
        yield ValueResult("skipped", "skipped: there is no group")
    for group in expect.response_contains_any or ():
        yield from _group(group, facts)


def not_contains(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The answer contains none of the texts."""
    for value in expect.response_not_contains or ():
        for text in resolved(value, facts.sources):
            if isinstance(text, ValueResult):
                yield text
            else:
                yield ValueResult("failed", f'found "{text}" in response') if text in facts.answer else HELD


def matches(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """Each pattern matches somewhere in the answer."""
    for pattern in expect.response_matches or ():
        yield _matched(pattern, facts.answer)


def _contained(text: str, answer: str) -> ValueResult:
    if text in answer:
        return HELD
    return ValueResult(
        "failed", f"expected '{text}' in response but not found", hint=_case_hint(text, answer)
    )


def _group(group: tuple[str, ...], facts: Facts) -> Iterator[ValueResult]:
    texts: list[str] = []
    for value in group:
        for text in resolved(value, facts.sources):
            if isinstance(text, ValueResult):
                yield text
            else:
                texts.append(text)
    if not group:
        yield ValueResult("skipped", "an empty group was skipped")
    elif texts and any(text in facts.answer for text in texts):
        yield HELD
    elif texts:
        wanted = ", ".join(f"'{text}'" for text in texts)
        hint = next(filter(None, (_case_hint(text, facts.answer) for text in texts)), "")
        yield ValueResult("failed", f"expected one of {wanted} in response but none found", hint=hint)


def _matched(pattern: str, answer: str) -> ValueResult:
    if not pattern:
        return ValueResult("skipped", "an empty pattern was skipped: it matches every response")
    try:
        found = compile_pattern(pattern, javascript=True).search(answer)
    except PatternError as error:
        return ValueResult("failed", f"invalid regex: {str(error).rstrip('.')}")
    return HELD if found else ValueResult("failed", f"'{pattern}' does not match the response")


def _case_hint(text: str, answer: str) -> str:
    """Suites written for runners that ignore case fail here; the hint tells why."""
    return f"The response holds '{text}' when case is ignored." if text.lower() in answer.lower() else ""


def latency(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The trial took no longer, from the message to the complete answer; 0 is a bound like any other."""
    bound = expect.max_latency_ms
    if bound is None:
        return
    took = string_of(facts.duration_ms)
    held = facts.duration_ms <= bound
    yield HELD if held else ValueResult("failed", f"took {took}ms, more than {string_of(bound)}ms")


def tokens(expect: Expect, facts: Facts) -> Iterator[ValueResult]:
    """The answer has no more tokens."""
    bound = expect.max_tokens
    if bound is None:
        return
    size = facts.tokens
    sentence = f"{size.count} tokens (by {size.source}), more than {string_of(bound)}"
    yield HELD if size.count <= bound else ValueResult("failed", sentence)
