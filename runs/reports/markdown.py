"""Write foreign texts into Markdown so that they can't act as markup."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 200
"""Characters of a text; the run's page has all of it."""
_BACKTICKS = re.compile("`+")
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of control and direction characters, which could end a line or disguise a text."""


def code(text: str, *, longest: int = LONGEST) -> str:
    """Return a text as a code span of one line, shortened to `longest` characters.

    A code span holds no links, images, HTML or mentions, and its fence is longer than any run of backticks in it
    (CommonMark 0.31, 6.1). It doesn't belong in a table, where a pipe would end its cell.
    """
    line = " ".join(_without_controls(text).split())
    line = line if len(line) <= longest else line[: longest - 1] + "…"
    fence = "`" * (1 + max((len(each) for each in _BACKTICKS.findall(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line or ' '}{pad}{fence}"


def _without_controls(text: str) -> str:
    return "".join(
        " " if char.isspace() else "" if unicodedata.category(char) in _UNSEEN else char for char in text
    )
