"""Assertions on time and size (tool-forge eval runner, Assertion Execution 8 and 9)."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.expectations.expect import Expect
from evaluators.expectations.facts import HELD, Atom, Facts
from evaluators.js_text import string_of


def latency(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The trial took no longer, from the message to the complete answer; 0 is a bound like any other."""
    bound = expect.max_latency_ms
    if bound is None:
        return
    took = string_of(facts.duration_ms)
    held = facts.duration_ms <= bound
    yield HELD if held else Atom("failed", f"took {took}ms, more than {string_of(bound)}ms")


def tokens(expect: Expect, facts: Facts) -> Iterator[Atom]:
    """The answer has no more tokens."""
    bound = expect.max_tokens
    if bound is None:
        return
    size = facts.tokens
    sentence = f"{size.count} tokens (by {size.source}), more than {string_of(bound)}"
    yield HELD if size.count <= bound else Atom("failed", sentence)
