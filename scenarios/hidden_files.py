"""Hidden files: what of a workspace an agent must not see, and which of it a setup needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scenarios.globs import matches
from scenarios.named_files import NamedFiles


def is_hidden(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern of hidden files matches a path of the workspace."""
    return any(matches(path, pattern) for pattern in patterns)


def named_in_setup(paths: Iterable[str], commands: Iterable[str]) -> frozenset[str]:
    """Return the paths that stand in a setup command, whole or as the file's name: it needs them."""
    named = NamedFiles(commands)
    return frozenset(path for path in paths if named.has(path))
