"""The lines of a file that a problem is about, for quoting them beneath it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.formats import format_of
from scenarios.formats.problems import Problem

AROUND = 1
"""Lines quoted before and after."""
WIDEST = 200


@dataclass(frozen=True)
class Line:
    number: int
    text: str
    here: bool


@dataclass(frozen=True)
class Quoted:
    """A problem with the lines it is about; none where the file is no text or has no such line."""

    problem: Problem
    lines: tuple[Line, ...]
    format: str = ""
    """The format that the file was read as, where it is known."""


def quoted(problems: Sequence[Problem], files: Mapping[str, bytes]) -> list[Quoted]:
    """Return the problems in their order, each with its lines."""
    texts: dict[str, list[str]] = {}
    formats: dict[str, str] = {}
    found = []
    for problem in problems:
        if problem.file not in texts:
            content = files.get(problem.file, b"")
            texts[problem.file] = content.decode("utf-8", "replace").splitlines()
            formats[problem.file] = format_of(problem.file, content) if content else ""
        found.append(Quoted(problem, _lines(problem, texts[problem.file]), formats[problem.file]))
    return found


def _lines(problem: Problem, lines: list[str]) -> tuple[Line, ...]:
    if not 1 <= problem.line <= len(lines):
        return ()
    first = max(1, problem.line - AROUND)
    last = min(len(lines), problem.line + AROUND)
    return tuple(Line(n, lines[n - 1][:WIDEST], n == problem.line) for n in range(first, last + 1))
