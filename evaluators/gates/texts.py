"""What gates ask of a text, whether a file or a command gave it."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from pydantic import AfterValidator

from evaluators.model import Json
from evaluators.patterns import SlowPattern, compile_pattern

Verdict = tuple[bool, str, dict[str, Json]]
"""Whether it holds, the message or its end, and what more to keep."""


def _compiles(text: str) -> str:
    # A stored pattern stays valid on a busy machine; the gate says that it was stopped.
    with suppress(SlowPattern):
        compile_pattern(text)
    return text


PatternText = Annotated[str, AfterValidator(_compiles)]
"""The text of a regular expression, checked when the gate is made."""


def contains(what: str, text: str, substring: str) -> Verdict:
    """Tell whether `text` contains a text; `what` names it in the message."""
    passed = substring in text
    verb = "contains" if passed else "does not contain"
    return passed, f"{what} {verb} '{substring}'.", {"expected": substring}


def matches(what: str, text: str, pattern: str) -> Verdict:
    """Tell whether `text` matches a regular expression somewhere; one that takes too long does not."""
    try:
        match = compile_pattern(pattern).search(text)
    except SlowPattern as error:
        return False, str(error), {"expected": pattern}
    verb = "matches" if match else "does not match"
    kept: dict[str, Json] = {"expected": pattern, "actual": match.text if match else None}
    return match is not None, f"{what} {verb} '{pattern}'.", kept
