"""Replace `{{seed:path}}` and `{{snapshot:path}}` in expected values (tool-forge eval runner, Template Token Resolution)."""

from __future__ import annotations

import re

from msgspec import Struct

from evaluators.model import Json
from evaluators.patterns import string_of

TOKEN = re.compile(r"\{\{(seed|snapshot):([^{}]*)\}\}")
_ANY_SOURCE = re.compile(r"\{\{\s*[\w-]+\s*:[^{}]*\}\}")
_INDEXED = re.compile(r"([^\[\]]*)((?:\[[0-9]{1,9}\])+)")


class TokenSources(Struct, frozen=True):
    """The data behind tokens; without a source, all its tokens are unresolved."""

    seed: Json = None
    snapshot: Json = None


class Resolved(Struct, frozen=True):
    """A value with its tokens replaced."""

    text: str | None
    """None if a token is unresolved."""
    unresolved: tuple[str, ...] = ()
    """Tokens without a value, as written."""


def resolve_tokens(value: str, sources: TokenSources) -> Resolved:
    """Return the value with every token replaced; one unresolved token makes the value unresolved.

    Tokens of other sources (`{{env:X}}`) stay as written. Inserted values are not searched for tokens.
    """
    tokens = [(match[0], _look_up(match[1], match[2], sources)) for match in TOKEN.finditer(value)]
    unresolved = tuple(token for token, leaf in tokens if leaf is None)
    if unresolved:
        return Resolved(None, unresolved)
    texts = iter([string_of(leaf) for _, leaf in tokens])
    return Resolved(TOKEN.sub(lambda _: next(texts), value))


def resolve_items(value: str, sources: TokenSources) -> list[Json] | None:
    """Return the list behind a value that is one token; None for other values."""
    match = TOKEN.fullmatch(value)
    leaf = _look_up(match[1], match[2], sources) if match else None
    return leaf if isinstance(leaf, list) else None


def tokens_in(value: str) -> tuple[str, ...]:
    """Return the seed and snapshot tokens of a text, as written."""
    return tuple(match[0] for match in TOKEN.finditer(value))


def other_tokens_in(value: str) -> tuple[str, ...]:
    """Return texts that look like tokens but are not: other sources, or blanks inside."""
    return tuple(match[0] for match in _ANY_SOURCE.finditer(value) if not TOKEN.fullmatch(match[0]))


def _look_up(source: str, path: str, sources: TokenSources) -> Json:
    """Return the value at a path; None if it is missing or null."""
    value = sources.seed if source == "seed" else sources.snapshot
    for segment in path.split("."):
        value = _step(value, segment)
        if value is None:
            return None
    return value


def _step(value: Json, segment: str) -> Json:
    match = _INDEXED.fullmatch(segment)
    if match is None:
        return _key(value, segment)
    child = _key(value, match[1]) if match[1] else value
    for index in match[2][1:-1].split("]["):
        child = child[int(index)] if isinstance(child, list) and int(index) < len(child) else None
    return child


def _key(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, dict) else None
