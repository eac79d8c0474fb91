"""Quote the lines of a file around a problem."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.transcripts.reading import decode_text
from scenarios.formats import detect_format
from scenarios.formats.problems import Problem

AROUND = 1
"""The number of lines quoted before and after."""
WIDEST = 200
_QUOTED = re.compile(r"'([^']+)'")
_KEYS = re.compile(r"[^.\[\]\d][^.\[\]]*")


@dataclass(frozen=True)
class QuotedLine:
    """One line around a problem; `here` marks the problem's line."""

    number: int
    text: str
    here: bool
    spot: str = ""
    """The part of the line with the problem; empty if unknown."""

    @property
    def parts(self) -> tuple[str, str, str]:
        """The text before the spot, the spot, and the text after it."""
        return self.text.partition(self.spot) if self.spot else (self.text, "", "")


@dataclass(frozen=True)
class Quoted:
    """A problem with its lines; no lines if the file is binary or too short."""

    problem: Problem
    lines: tuple[QuotedLine, ...]
    format: str = ""
    """The format of the file, if known."""


def quote_lines(problems: Sequence[Problem], files: Mapping[str, bytes]) -> list[Quoted]:
    """Return the problems in order, each with its lines."""
    texts: dict[str, list[str]] = {}
    formats: dict[str, str] = {}
    quotations = []
    for problem in problems:
        if problem.file not in texts:
            content = files.get(problem.file, b"")
            texts[problem.file] = decode_text(content, "replace").splitlines()
            formats[problem.file] = detect_format(problem.file, content) if content else ""
        quotations.append(Quoted(problem, _lines(problem, texts[problem.file]), formats[problem.file]))
    return quotations


def _lines(problem: Problem, lines: list[str]) -> tuple[QuotedLine, ...]:
    if not 1 <= problem.line <= len(lines):
        return ()
    first = max(1, problem.line - AROUND)
    last = min(len(lines), problem.line + AROUND)
    texts = [(n, lines[n - 1][:WIDEST]) for n in range(first, last + 1)]
    return tuple(
        QuotedLine(n, text, here=n == problem.line, spot=_spot(problem, text) if n == problem.line else "")
        for n, text in texts
    )


def _spot(problem: Problem, text: str) -> str:
    """Return the text that the problem quotes from the line, else the last key of its location."""
    words = [*_QUOTED.findall(problem.what), *_KEYS.findall(problem.where)[-1:]]
    return next((word for word in words if word in text), "")
