"""Match paths of a workspace with patterns: `*`, `?`, and `**` for any folders, none included."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2


def matches(path: str, pattern: str) -> bool:
    """Return whether the whole path matches the pattern."""
    return _compile(pattern).fullmatch(path) is not None


_GLOB = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")


_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    # RE2, as patterns of a project are as untrusted as any.
    parts = (_MEANING.get(part) or re.escape(part) for part in _GLOB.findall(pattern))
    return re2.compile("(?s)" + "".join(parts))
