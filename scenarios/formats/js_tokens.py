"""The tokens of JavaScript and TypeScript sources, which are read and never run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

MAX_NESTING = 40
"""Templates inside the substitutions of templates."""

_SKIPPED = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?(?:\*/|\Z)|\A#![^\n]*)+", re.DOTALL)
_WORD = re.compile(r"[^\W\d][\w$]*|[$#][\w$]*")
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F_]+n?|0[oO][0-7_]+n?|0[bB][01_]+n?|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?n?", re.ASCII
)
_TEXT = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"", re.DOTALL)
# Bounded, so that many slashes in a long line cannot make each look through all of it.
_REGEX = re.compile(r"/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,500}\]){1,1000}/[a-z]*")
_SIGN = re.compile(r"=>|\.\.\.|.", re.DOTALL)
_BEFORE_REGEX = frozenset(
    (
        *("return", "typeof", "case", "in", "of", "delete", "void", "instanceof"),
        *("new", "throw", "else", "do", "yield", "await", "default"),
    )
)
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_SHORT = {
    "n": "\n",
    "t": "\t",
    "b": "\b",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "0": "\0",
    "\n": "",
    "\r": "",
}


class UnreadableSource(ValueError):
    """The text is no JavaScript that can be taken apart; the message is a sentence with the line."""


class Token(Struct, frozen=True, gc=False):
    """One token; comments and white space are none."""

    kind: Literal["word", "text", "template", "number", "regex", "sign"]
    """A template without substitutions is a text; one with them is a template."""
    value: str
    """What a text says, with its escapes decoded; else the source."""


def tokenize(source: str) -> list[Token]:
    """Return the tokens of a source. Raises `UnreadableSource` where a text or template does not end."""
    return list(_Reader(source.replace("\r\n", "\n")).tokens())


class _Reader:
    """Goes through a source once; `previous` decides whether a slash begins a regular expression."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.nesting = 0
        self.previous: Token | None = None

    def tokens(self) -> Iterator[Token]:
        while (token := self.next()) is not None:
            yield token

    def next(self) -> Token | None:
        skipped = _SKIPPED.match(self.source, self.at)
        self.at = skipped.end() if skipped else self.at
        if self.at >= len(self.source):
            return None
        self.previous = self._token(self.source[self.at])
        return self.previous

    def _token(self, first: str) -> Token:
        if first in "'\"":
            return self._text()
        if first == "`":
            return self._template()
        if first == "/" and self._may_be_regex() and (found := self._take(_REGEX)):
            return Token("regex", found)
        if found := self._take(_WORD):
            return Token("word", found)
        if (found := self._take(_NUMBER)) is not None:
            return Token("number", found)
        return Token("sign", self._take(_SIGN) or "")

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.source, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def _may_be_regex(self) -> bool:
        before = self.previous
        if before is None:
            return True
        if before.kind == "word":
            return before.value in _BEFORE_REGEX
        return before.kind == "sign" and before.value not in (")", "]")

    def _text(self) -> Token:
        found = _TEXT.match(self.source, self.at)
        if found is None:
            raise self._unreadable("a text does not end")
        self.at = found.end()
        return Token("text", _decoded(found[0][1:-1]))

    def _template(self) -> Token:
        start = self.at
        self.at += 1
        static = True
        while (end := self._next_in_template()) != "`":
            if end == "${":
                static = False
                self._substitution()
        written = self.source[start + 1 : self.at - 1]
        return Token("text", _decoded(written)) if static else Token("template", written)

    def _next_in_template(self) -> str:
        found = _IN_TEMPLATE.search(self.source, self.at)
        if found is None:
            raise self._unreadable("a template does not end")
        self.at = found.end()
        return found[0]

    def _substitution(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self._unreadable(f"templates are nested more than {MAX_NESTING} deep")
        self.previous = None
        open_braces = 1
        while open_braces:
            token = self.next()
            if token is None:
                raise self._unreadable("a template does not end")
            if token.kind == "sign":
                open_braces += (token.value == "{") - (token.value == "}")
        self.nesting -= 1

    def _unreadable(self, what: str) -> UnreadableSource:
        line = self.source.count("\n", 0, self.at) + 1
        return UnreadableSource(f"In line {line} {what}.")


_IN_TEMPLATE = re.compile(r"\\.|\$\{|`", re.DOTALL)


def _decoded(written: str) -> str:
    if "\\" not in written:
        return written
    text = _ESCAPE.sub(_escape, written)
    # Characters beyond the first plane may be written as two escapes, which are one character together.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(found: re.Match[str]) -> str:
    digits = found[1] or found[2] or found[3]
    if digits is None:
        return _SHORT.get(found[4], found[4])
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"
