"""Find the files of a workspace that commands name: their path or their name is a word of one."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from functools import cached_property

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
        return any(_means(word, path) for word in self._by_name.get(posixpath.basename(path), ()))

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


def _means(word: str, path: str) -> bool:
    return f"/{path}".endswith(f"/{word}") or f"/{word}".endswith(f"/{path}")
