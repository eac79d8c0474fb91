"""Find a judge's statements about a single criterion."""

from __future__ import annotations

import re
from collections.abc import Sequence


def names(text: str, criterion: str) -> bool:
    """Return whether a statement names a criterion by its id.

    `[id]` and `id:` at the beginning always do. Elsewhere the id counts if it has several words, because one such as
    `task` is an everyday word.
    """
    words = re.split(r"[\W_]+", criterion.casefold())
    written = r"[\W_]+".join(map(re.escape, filter(None, words)))
    if not written:
        return False
    start = rf"\s*(\[\s*{written}\s*\]|[`*\"']*{written}[`*\"']*\s*:)"
    shown = text.casefold()
    if re.match(start, shown):
        return True
    return len(list(filter(None, words))) > 1 and re.search(rf"(?<!\w){written}(?!\w)", shown) is not None


def statements_about(criterion: str, reason: str, statements: Sequence[str]) -> list[int]:
    """Return the positions of statements that name a criterion and don't repeat its reason."""
    return [
        position
        for position, text in enumerate(statements)
        if names(text, criterion) and not (reason and reason in text)
    ]
