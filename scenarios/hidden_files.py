"""Hidden files: what of a workspace an agent must not see, and which of it a setup needs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from scenarios.globs import matches

_WORD = re.compile(r"[^\s'\"`;|&<>()=${}]+")


def is_hidden(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern of hidden files matches a path of the workspace."""
    return any(matches(path, pattern) for pattern in patterns)


def named_in_setup(paths: Iterable[str], commands: Iterable[str]) -> frozenset[str]:
    """Return the paths that stand in a setup command, whole or as the file's name: it needs them."""
    words = {posixpath.normpath(word) for command in commands for word in _WORD.findall(command)}
    return frozenset(path for path in paths if any(_means(word, path) for word in words))


def _means(word: str, path: str) -> bool:
    """Return whether a word may be a path from the root, from a folder below it, or from one above it."""
    return f"/{path}".endswith(f"/{word}") or f"/{word}".endswith(f"/{path}")
