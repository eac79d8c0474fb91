"""Which files are guidelines for the agent and no part of the question (AgentV evaluation, Guideline Pattern Configuration)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import re2

DEFAULT_PATTERNS = (
    "**/*.instructions.md",
    "**/instructions/**",
    "**/*.prompt.md",
    "**/prompts/**",
)
"""What holds where no file of settings gives `guideline_patterns`."""

LONGEST_PATTERN = 1_000

_PART = re.compile(r"(?:^|(?<=/))\*\*/|/\*\*$|\*+|\?|[{},]|[^*?{},/]+|/")


class BadGlob(ValueError):
    """The pattern cannot be used; the message is a sentence."""


def is_guideline(path: str, patterns: Sequence[str] | None = None) -> bool:
    """Tell whether a path is that of a guideline file; None stands for the default patterns.

    Both are compared with forward slashes. `*` and `?` stay within a folder, `**` crosses folders and
    `{a,b}` is either; folders that begin with a dot match like any other.
    """
    name = path.replace("\\", "/").removeprefix("./")
    return any(matcher(pattern)(name) for pattern in patterns or _default(patterns))


def _default(patterns: Sequence[str] | None) -> Sequence[str]:
    return DEFAULT_PATTERNS if patterns is None else ()


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], object]:
    """Return what gives a match, else None, for a path with forward slashes, in linear time. Raises `BadGlob`."""
    glob = pattern.replace("\\", "/").removeprefix("./")
    if not glob.strip() or len(glob) > LONGEST_PATTERN:
        raise BadGlob(f"A pattern has 1 to {LONGEST_PATTERN} characters.")
    if not _balanced(glob):
        raise BadGlob(f"The braces of '{pattern}' do not fit together. Write them as in *.{{md,txt}}.")
    fullmatch: Callable[[str], object] = re2.compile("(?s)" + "".join(_translated(glob))).fullmatch
    return fullmatch


def _translated(glob: str) -> list[str]:
    depth = 0
    found: list[str] = []
    for part in _PART.findall(glob):
        depth += (part == "{") - (part == "}")
        found.append("|" if part == "," and depth else _MEANINGS.get(part) or re.escape(part))
    return found


_MEANINGS = {
    "**/": "(?:.*/)?",
    "/**": "(?:/.*)?",
    "**": ".*",
    "*": "[^/]*",
    "?": "[^/]",
    "{": "(?:",
    "}": ")",
}


def _balanced(glob: str) -> bool:
    depth = 0
    for character in glob:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0
