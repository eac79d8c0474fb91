"""Annotations of GitHub Actions: lines of a command's output that the runner shows at a file and line.

The syntax is that of workflow commands (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from scenarios.formats.parsed import Problem

MOST = 10
"""GitHub shows at most this many errors of a step."""


class FileAnnotation(NamedTuple):
    """A sentence at a place of the checkout."""

    file: str
    line: int
    message: str
    is_error: bool = True

    def __str__(self) -> str:
        level = "error" if self.is_error else "warning"
        return f"::{level} file={_property(self.file)},line={self.line}::{_data(self.message)}"


def shows_annotations() -> bool:
    """Return whether the command runs in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS", "") == "true"


def annotations_of(problems: Iterable[Problem], roots: Sequence[str]) -> list[FileAnnotation]:
    """Return the annotations of files' problems; `roots` are the paths that were read."""
    return [
        FileAnnotation(
            on_disk(problem.file, roots),
            problem.line,
            f"{problem.what} {problem.fix}".strip(),
            is_error=not problem.lint,
        )
        for problem in problems
    ][:MOST]


def on_disk(file: str, roots: Sequence[str]) -> str:
    """Return a file of a bundle as a path in the checkout, as GitHub and editors know it; as it is if it isn't found."""
    places = [place for root in roots for place in (Path(root) / file, Path(root).parent / file, Path(root))]
    path = next((each for each in places if each.is_file() and each.name == Path(file).name), None)
    if path is None:
        return file
    checkout = os.environ.get("GITHUB_WORKSPACE") or Path.cwd()
    return Path(os.path.relpath(path.resolve(), Path(checkout).resolve())).as_posix()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
