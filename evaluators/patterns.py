"""Regular expressions from files, which nobody has reason to trust.

RE2 matches in linear time; what it lacks (look-around, back-references) runs under a time limit.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2
from msgspec import Struct

from evaluators.js_patterns import from_javascript

SECONDS = 0.5
"""How long a pattern that RE2 does not know may search."""

_QUIET = re2.Options()
_QUIET.log_errors = False


class PatternError(ValueError):
    """A pattern that cannot be used; the message is a sentence.

    PatternError
    ├── BadPattern   it is no regular expression
    └── SlowPattern  it searched for longer than `SECONDS`
    """


class BadPattern(PatternError):
    """The text is no regular expression."""


class SlowPattern(PatternError):
    """The search took too long and was stopped."""


class Match(Struct, frozen=True):
    """Where a pattern matched."""

    text: str
    start: int
    end: int
    sub: str | None = None
    """The group named `sub`, else the last group; None without groups or where it took no part."""


class Pattern(Struct, frozen=True):
    """A compiled pattern."""

    text: str
    compiled: Any
    linear: bool
    """Whether RE2 runs it."""

    def search(self, text: str) -> Match | None:
        """Return the first match, or None. Raises `SlowPattern`."""
        found = self.compiled.search(text) if self.linear else self._limited(text)
        if found is None:
            return None
        return Match(found.group(), found.start(), found.end(), self._sub(found))

    def _limited(self, text: str) -> Any:
        try:
            return self.compiled.search(text, timeout=SECONDS)
        except TimeoutError:
            raise SlowPattern(
                f"The pattern '{self.text}' was stopped after {SECONDS} s. Write it without nested repetition."
            ) from None

    def _sub(self, found: Any) -> str | None:
        if not self.compiled.groups:
            return None
        group: str | None = found.group("sub" if "sub" in self.compiled.groupindex else self.compiled.groups)
        return group


@lru_cache(maxsize=512)
def compile_pattern(text: str, *, javascript: bool = False) -> Pattern:
    """Return the pattern, ready to search; RE2's syntax, or JavaScript's.

    Raises `BadPattern` with what is wrong with it.
    """
    source = from_javascript(text) if javascript else text
    linear = _linear(source)
    if linear is not None:
        return Pattern(text, linear, linear=True)
    # Loaded for the few patterns that need it.
    import regex

    try:
        # As RE2 reads them: classes such as \d are of ASCII, and $ is the very end.
        return Pattern(text, regex.compile(_ending_last(source), regex.ASCII), linear=False)
    except (regex.error, OverflowError, RecursionError) as error:
        raise BadPattern(f"'{text}' is not a regular expression: {error}.") from None


def _linear(text: str) -> Any:
    """Return what RE2 makes of the pattern; None where it lacks something, or the pattern is bad."""
    try:
        return re2.compile(text, _QUIET)
    except re2.error:
        return None


def _ending_last(text: str) -> str:
    """Return the pattern with each `$` outside a class as the end of the text, also before a line's end."""
    if _MULTILINE.search(text):
        return text
    return "".join(r"\Z" if piece == "$" else piece for piece in _PIECE.findall(text))


def required_literal(text: str) -> str:
    """Return characters that every match of the pattern holds, or nothing where that is not certain.

    Used to pass over most lines of a long transcript without looking closer.
    """
    if _UNCERTAIN.search(text):
        return ""
    runs = [""]
    depth = 0
    for piece in _PIECE.findall(text):
        if piece[0] in "*?{" and depth == 0:
            runs[-1] = runs[-1][:-1]
        depth += (piece[0] == "(") - (piece == ")")
        literal = piece[-1] if depth == 0 and _LITERAL.fullmatch(piece) else ""
        runs[-1:] = [runs[-1] + literal] if literal else [runs[-1], ""]
    return max(runs, key=len)


# Alternatives, flags and look-around, and escapes that stand for other characters than they show.
_UNCERTAIN = re.compile(r"\||\(\?(?!P<|:)|\\[\dxpPNuUQ]")
_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
_PIECE = re.compile(r"\\.|\[\^?\]?[^\]]*\]|\(\?P<\w+>|\(\?:|\{[^}]*\}|.", re.DOTALL)
_LITERAL = re.compile(r"[\w/-]|\\[^\w\s]")
