"""Decide which files are guidelines instead of parts of the question (AgentV evaluation, Guideline Pattern Configuration)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import re2

from evaluators.patterns import LONGEST

DEFAULT_PATTERNS = (
    "**/*.instructions.md",
    "**/instructions/**",
    "**/*.prompt.md",
    "**/prompts/**",
)
"""The patterns without `guideline_patterns` in any settings file."""
_PART = re.compile(r"(?:^|(?<=/))\*\*/|/\*\*$|\*+|\?|[{},]|[^*?{},/]+|/")


class BadGlob(ValueError):
    """The pattern is invalid; the message is a sentence."""


def is_guideline(path: str, patterns: Sequence[str] | None = None) -> bool:
    """Return whether a path is a guideline file; None means the default patterns.

    Paths and patterns use forward slashes. `*` and `?` match within a folder, `**` across folders, and `{a,b}`
    matches either text. Hidden folders match like any other.
    """
    name = path.replace("\\", "/").removeprefix("./")
    return any(matcher(pattern)(name) for pattern in (DEFAULT_PATTERNS if patterns is None else patterns))


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that matches paths against a glob in linear time. Raises `BadGlob`."""
    glob = pattern.replace("\\", "/").removeprefix("./")
    if not glob.strip() or len(glob) > LONGEST:
        raise BadGlob(f"A pattern must have 1 to {LONGEST} characters.")
    if not _is_balanced(glob):
        raise BadGlob(f"The braces of '{pattern}' do not match. Write them as in *.{{md,txt}}.")
    fullmatch: Callable[[str], object] = re2.compile("(?s)" + "".join(_translate(glob))).fullmatch
    return fullmatch


def _translate(glob: str) -> list[str]:
    depth = 0
    parts: list[str] = []
    for part in _PART.findall(glob):
        depth += (part == "{") - (part == "}")
        parts.append("|" if part == "," and depth else _MEANINGS.get(part) or re.escape(part))
    return parts


_MEANINGS = {
    "**/": "(?:.*/)?",
    "/**": "(?:/.*)?",
    "**": ".*",
    "*": "[^/]*",
    "?": "[^/]",
    "{": "(?:",
    "}": ")",
}


def _is_balanced(glob: str) -> bool:
    depth = 0
    for character in glob:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0
