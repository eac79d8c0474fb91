"""Object literals of a JavaScript source, as far as their values are written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from msgspec import Struct

from evaluators.model import Json
from scenarios.formats.js_tokens import Token

MAX_DEPTH = 40
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "undefined": None}
_DECLARES = frozenset(("const", "let", "var"))


class NotStatic(ValueError):
    """A value is computed, so it cannot be told without running the source."""


class ObjectLiteral(Struct, frozen=True):
    """An object literal that a module assigns, exports or hands to a function."""

    name: str
    """The variable it is assigned to; `default` for the default export, empty for neither."""
    fields: Mapping[str, Sequence[Token]]
    """The tokens of each value by its key; methods and spreads are left out."""

    def value(self, key: str) -> Json:
        """Return the value of a field. Raises `NotStatic` where it is missing or computed."""
        if key not in self.fields:
            raise NotStatic(f"There is no '{key}'.")
        return static_value(self.fields[key])


def object_literals(tokens: Sequence[Token]) -> list[ObjectLiteral]:
    """Return the object literals outside of functions and classes, in their order."""
    found: list[ObjectLiteral] = []
    name, at = "", 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "word" and token.value in _DECLARES and at + 1 < len(tokens):
            name = tokens[at + 1].value
        elif token.kind == "word" and token.value == "default":
            name = "default"
        elif _is_sign(token, "{"):
            end = _end(tokens, at)
            if at and _may_precede(tokens[at - 1]):
                found.append(ObjectLiteral(name, _fields(tokens[at + 1 : end])))
            at = end
        at += 1
    return found


def static_value(tokens: Sequence[Token], depth: int = 0) -> Json:
    """Return the JSON value that tokens write out; texts may be joined by `+`. Raises `NotStatic`."""
    tokens = _without_type(tokens)
    if not tokens or depth > MAX_DEPTH:
        raise NotStatic("There is no value that can be read.")
    first = tokens[0]
    if _is_sign(first, "(", "[", "{") and _end(tokens, 0) == len(tokens) - 1:
        return _enclosed(first.value, tokens[1:-1], depth + 1)
    if len(tokens) == 1:
        return _single(first)
    if len(tokens) == 2 and _is_sign(first, "-") and tokens[1].kind == "number":
        return -_number(tokens[1].value)
    parts = [static_value(part, depth + 1) for part in _split(tokens, "+", at_least=2)]
    if not all(isinstance(part, str) for part in parts):
        raise NotStatic("Only texts are joined.")
    return "".join(parts)


def _enclosed(sign: str, inner: Sequence[Token], depth: int) -> Json:
    if sign == "(":
        return static_value(inner, depth)
    items = [item for item in _split(inner, ",") if item]
    if sign == "[":
        return [static_value(item, depth) for item in items]
    fields = _fields(inner)
    if len(fields) != len(items):
        raise NotStatic("The object has methods, spreads or computed keys.")
    return {key: static_value(value, depth) for key, value in fields.items()}


def _single(token: Token) -> Json:
    if token.kind == "text":
        return token.value
    if token.kind == "number":
        return _number(token.value)
    if token.kind == "word" and token.value in _WORDS:
        return _WORDS[token.value]
    raise NotStatic("The value is computed.")


def _number(written: str) -> int | float:
    digits = written.replace("_", "").rstrip("n")
    try:
        return int(digits, 0)
    except ValueError:
        return _float(digits)


def _float(digits: str) -> float:
    try:
        value = float(digits)
    except ValueError as error:
        raise NotStatic(f"{digits} is no number.") from error
    if not isfinite(value):
        raise NotStatic(f"{digits} is too large.")
    return value


def _fields(inner: Sequence[Token]) -> dict[str, Sequence[Token]]:
    return {
        entry[0].value: entry[2:]
        for entry in _split(inner, ",")
        if len(entry) > 2 and entry[0].kind in ("word", "text", "number") and _is_sign(entry[1], ":")
    }


def _without_type(tokens: Sequence[Token]) -> Sequence[Token]:
    """Cut `as const` and the like."""
    level = 0
    for at, token in enumerate(tokens):
        level += _change(token)
        if at and level == 0 and token.kind == "word" and token.value in ("as", "satisfies"):
            return tokens[:at]
    return tokens


def _split(tokens: Sequence[Token], sign: str, *, at_least: int = 0) -> Iterator[Sequence[Token]]:
    """Yield the parts between signs that stand outside of all brackets."""
    start = level = 0
    ends = []
    for at, token in enumerate(tokens):
        level += _change(token)
        if level == 0 and _is_sign(token, sign):
            ends.append(at)
    if len(ends) + 1 < at_least:
        raise NotStatic("The value is computed.")
    for end in [*ends, len(tokens)]:
        yield tokens[start:end]
        start = end + 1


def _end(tokens: Sequence[Token], start: int) -> int:
    """Return the place of the bracket that closes the one at `start`; the last token where none does."""
    level = 0
    for at in range(start, len(tokens)):
        level += _change(tokens[at])
        if level == 0:
            return at
    return len(tokens) - 1


def _change(token: Token) -> int:
    if token.kind != "sign":
        return 0
    return (token.value in _OPEN) - (token.value in _CLOSE)


def _may_precede(token: Token) -> bool:
    return _is_sign(token, "=", "(", ",") or (token.kind == "word" and token.value == "default")


def _is_sign(token: Token, *signs: str) -> bool:
    return token.kind == "sign" and token.value in signs
