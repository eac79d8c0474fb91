"""The keys of a skill's cases and the ids of their statements, which suites and imported results share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evaluators.model import Json

ID_LENGTH = 60
"""Characters of an id made from words."""


def key_of_id(id: Json) -> str:
    """Return the key of a case with this id: a text as it is, a number n as `eval-n`, as skill-creator calls its folder.

    Empty for anything else.
    """
    if isinstance(id, str):
        return id.strip()
    return f"eval-{id}" if isinstance(id, int) and not isinstance(id, bool) else ""


def statement_ids(texts: Sequence[str]) -> list[str]:
    """Return an id for each statement of a case, made from its words, so that people know it again."""
    ids: list[str] = []
    for text in texts:
        wanted = join_words(text) or "statement"
        ids.append(next(id for id in _number(wanted) if id not in ids))
    return ids


def join_words(text: str, joint: str = "_") -> str:
    """Return the words of a text, cut at a word."""
    joined = joint.join(re.findall(r"\w+", text.lower()))
    if len(joined) <= ID_LENGTH:
        return joined
    return joined[: ID_LENGTH + 1].rpartition(joint)[0] or joined[:ID_LENGTH]


def _number(text: str) -> Iterator[str]:
    yield text
    number = 2
    while True:
        yield f"{text}_{number}"
        number += 1
