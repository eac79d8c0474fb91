"""Find files of a workspace: those that commands name, by path or name, and hidden ones."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from scenarios.globs import matches

_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_WORD = re.compile(r"[^\s'\"`;|&<>()=${},:]+")


class NamedFiles:
    """The words of commands, as files that they may name."""

    def __init__(self, commands: Iterable[str], *more: str) -> None:
        words = [word for command in commands for word in _WORD.findall(_VARIABLE.sub("", command))]
        self.words = frozenset(posixpath.normpath(word).lstrip("/") for word in (*words, *more))
        """Without variables, which stand for folders that aren't known."""

    def has(self, path: str) -> bool:
        """Return whether a word may be this path, from the root, from a folder below it or from one above it."""
        return any(
            f"/{path}".endswith(f"/{word}") or f"/{word}".endswith(f"/{path}")
            for word in self._by_name.get(posixpath.basename(path), ())
        )

    @cached_property
    def parts(self) -> frozenset[str]:
        """The steps of all words."""
        return frozenset(part for word in self.words for part in word.split("/"))

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        words: dict[str, list[str]] = {}
        for word in self.words:
            words.setdefault(posixpath.basename(word), []).append(word)
        return words


def is_hidden(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern of hidden files matches a path of the workspace."""
    return any(matches(path, pattern) for pattern in patterns)


def find_named(paths: Iterable[str], commands: Iterable[str]) -> frozenset[str]:
    """Return the paths that a command names, by the whole path or the file's name."""
    named = NamedFiles(commands)
    return frozenset(path for path in paths if named.has(path))
