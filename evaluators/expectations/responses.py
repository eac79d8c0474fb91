"""Assertions on the text of the answer (tool-forge eval runner, Assertion Execution 4 to 7)."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.expectations.expect import Expect
from evaluators.expectations.facts import HELD, Atom, Facts, resolved
from evaluators.js_text import WHITE_SPACE
from evaluators.patterns import PatternError, compile_pattern


def non_empty(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The answer holds more than white space."""
    if expect.response_non_empty:
        yield HELD if facts.answer.strip(WHITE_SPACE) else Atom("failed", "the response is empty")


def contains(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The answer contains each text, as it is written."""
    for value in expect.response_contains or ():
        for text in resolved(value, facts.sources):
            yield text if isinstance(text, Atom) else _contained(text, facts.answer)


def contains_any(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The answer contains at least one text of each group."""
    if expect.response_contains_any == ():
        yield Atom("skipped", "skipped: there is no group")
    for group in expect.response_contains_any or ():
        yield from _group(group, facts)


def not_contains(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The answer contains none of the texts."""
    for value in expect.response_not_contains or ():
        for text in resolved(value, facts.sources):
            if isinstance(text, Atom):
                yield text
            else:
                yield Atom("failed", f'found "{text}" in response') if text in facts.answer else HELD


def matches(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """Each pattern matches somewhere in the answer."""
    for pattern in expect.response_matches or ():
        yield _matched(pattern, facts.answer)


def _contained(text: str, answer: str) -> Atom:
    if text in answer:
        return HELD
    return Atom("failed", f"expected '{text}' in response but not found", hint=_case_hint(text, answer))


def _group(group: tuple[str, ...], facts: Facts) -> Iterator[Atom]:
    texts: list[str] = []
    for value in group:
        for text in resolved(value, facts.sources):
            if isinstance(text, Atom):
                yield text
            else:
                texts.append(text)
    if not group:
        yield Atom("skipped", "an empty group was skipped")
    elif texts and any(text in facts.answer for text in texts):
        yield HELD
    elif texts:
        wanted = ", ".join(f"'{text}'" for text in texts)
        hint = next(filter(None, (_case_hint(text, facts.answer) for text in texts)), "")
        yield Atom("failed", f"expected one of {wanted} in response but none found", hint=hint)


def _matched(pattern: str, answer: str) -> Atom:
    if not pattern:
        return Atom("skipped", "an empty pattern was skipped: it matches every response")
    try:
        found = compile_pattern(pattern, javascript=True).search(answer)
    except PatternError as error:
        return Atom("failed", f"invalid regex: {str(error).rstrip('.')}")
    return HELD if found else Atom("failed", f"'{pattern}' does not match the response")


def _case_hint(text: str, answer: str) -> str:
    """Suites written for runners that ignore case fail here; the hint tells why."""
    return f"The response holds '{text}' when case is ignored." if text.lower() in answer.lower() else ""
