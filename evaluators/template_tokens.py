"""`{{seed:path}}` and `{{snapshot:path}}` in expected values (tool-forge eval runner, Template Token Resolution)."""

from __future__ import annotations

import re

from msgspec import Struct

from evaluators.js_text import string_of
from evaluators.model import Json

TOKEN = re.compile(r"\{\{(seed|snapshot):([^{}]*)\}\}")
_ANY_SOURCE = re.compile(r"\{\{\s*[\w-]+\s*:[^{}]*\}\}")
_INDEXED = re.compile(r"([^\[\]]*)((?:\[[0-9]{1,9}\])+)")


class Sources(Struct, frozen=True):
    """What tokens stand for; None where there is none, and every token of it is then unresolved."""

    seed: Json = None
    snapshot: Json = None


class Resolved(Struct, frozen=True):
    """A value with its tokens replaced."""

    text: str | None
    """None is UNRESOLVED."""
    unresolved: tuple[str, ...] = ()
    """The tokens, as written, that nothing stands behind."""


def resolve(value: str, sources: Sources) -> Resolved:
    """Return the value with every token replaced; one that is unresolved makes the whole value so.

    Tokens of other sources (`{{env:X}}`) stay as they are. What was put in is not looked through again.
    """
    found = [(match[0], _look_up(match[1], match[2], sources)) for match in TOKEN.finditer(value)]
    unresolved = tuple(token for token, leaf in found if leaf is None)
    if unresolved:
        return Resolved(None, unresolved)
    texts = iter([string_of(leaf) for _, leaf in found])
    return Resolved(TOKEN.sub(lambda _: next(texts), value))


def resolve_items(value: str, sources: Sources) -> list[Json] | None:
    """Return the list that a lone token stands for; None where it is no list or not alone."""
    match = TOKEN.fullmatch(value)
    leaf = _look_up(match[1], match[2], sources) if match else None
    return leaf if isinstance(leaf, list) else None


def tokens_in(value: str) -> tuple[str, ...]:
    """Return the seed and snapshot tokens of a text, as written."""
    return tuple(match[0] for match in TOKEN.finditer(value))


def other_tokens_in(value: str) -> tuple[str, ...]:
    """Return what looks like a token and is none: another source, or blanks inside."""
    return tuple(match[0] for match in _ANY_SOURCE.finditer(value) if not TOKEN.fullmatch(match[0]))


def _look_up(source: str, path: str, sources: Sources) -> Json:
    """Return what stands at a path; None for nothing, and for a null, which counts as nothing."""
    found = sources.seed if source == "seed" else sources.snapshot
    for segment in path.split("."):
        found = _step(found, segment)
        if found is None:
            return None
    return found


def _step(value: Json, segment: str) -> Json:
    match = _INDEXED.fullmatch(segment)
    if match is None:
        return _key(value, segment)
    found = _key(value, match[1]) if match[1] else value
    for index in match[2][1:-1].split("]["):
        found = found[int(index)] if isinstance(found, list) and int(index) < len(found) else None
    return found


def _key(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, dict) else None
