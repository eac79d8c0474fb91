"""Shared parts of commands that read files: problems, project and user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from scenarios.annotations import annotations_of, shows_annotations
from scenarios.bundle_limits import read_whole
from scenarios.formats.problems import Problem, ScenarioFileError

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
