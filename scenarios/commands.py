"""Shared parts of commands that read files: problems with the lines around them, project and user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from evalhub.teams.access import default_project, local_owner
from evalhub.teams.models import Project
from evalhub.web.commands import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    REGRESSED,
    WRONG_USE,
    Arguments,
    PlainCommand,
    Refused,
    Result,
)
from evaluators.transcripts.reading import decode_text
from scenarios.annotations import annotations_of, shows_annotations
from scenarios.archives import read_whole
from scenarios.formats import detect_format
from scenarios.formats.parsed import Problem, ScenarioFileError

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


__all__ = [
    "FAILED",
    "NOT_MEASURED",
    "PASSED",
    "REGRESSED",
    "WRONG_USE",
    "Arguments",
    "EvalhubCommand",
    "Refused",
    "Result",
]
MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
"""The size limit of evidence and results, which include transcripts."""


class EvalhubCommand(PlainCommand):
    """Base of the commands that read files: `work` may raise `ScenarioFileError` too."""

    def carry_out(self, options: dict[str, Any]) -> Result:
        try:
            return super().carry_out(options)
        except ScenarioFileError as error:
            self.annotate(error.problems, options.get("suites") or options.get("paths") or ())
            sentence = "The files have errors."
            raise Refused(sentence, id="files/refused", problems=error.problems) from error

    def annotate(self, problems: Iterable[Problem], roots: Sequence[str]) -> None:
        """Show problems at their lines where GitHub Actions runs the command. `roots` are the paths that were read."""
        for annotation in annotations_of(problems, roots) if shows_annotations() else ():
            self.stderr.write(str(annotation), style_func=str)


def add_project_argument(parser: Arguments) -> None:
    """Add `--project`."""
    parser.add_argument("--project", help="slug of the project (default: the default project)")


def add_strict_argument(parser: Arguments) -> None:
    """Add `--strict`."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse eval cases without `expect`, or with unknown keys in it",
    )


def add_tool_argument(parser: Arguments) -> None:
    """Add `--tool`."""
    parser.add_argument(
        "--tool", metavar="NAME", help="the tool that a skill's evals test, if their gates.yaml names none"
    )


def add_summary_argument(parser: Arguments) -> None:
    """Add `--summary-file`."""
    parser.add_argument(
        "--summary-file",
        metavar="FILE",
        help="write a Markdown summary to this file; - appends it to the job summary of GitHub Actions",
    )


def chosen_project(slug: str | None) -> Project:
    """Return the named project, else the default one. Raises `Refused`."""
    if slug is None:
        return default_project()
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        names = ", ".join(Project.objects.values_list("slug", flat=True)) or "none yet"
        raise Refused(f"Unknown project '{slug}'. Projects: {names}.", id="project/unknown")
    return project


def acting_user() -> User | None:
    """Return the user of the command line: the local owner in embedded mode, else None."""
    return local_owner() if settings.EMBEDDED else None


def read_bytes(path: str, what: str) -> bytes:
    """Return a file's content. Raises `Refused` naming the file's purpose in `what`."""
    try:
        return read_whole(Path(path), most=MAX_DOCUMENT_BYTES)
    except OSError as error:
        raise Refused(
            f"{path}: {what} cannot be read: {error.strerror}. Check the path.", id="command/unreadable"
        ) from error
