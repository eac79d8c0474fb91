"""An eval file within its upload, and the files it may reference."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluators.tool_use.guidelines import DEFAULT_PATTERNS, is_guideline
from scenarios.formats.agentv.file_versions import FIRST, FileVersion
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem
from scenarios.formats.upload import UploadedFiles, inside


@dataclass(frozen=True)
class EvalFileContext:
    """One eval file with its upload and guideline patterns."""

    document: PositionedDocument
    upload: UploadedFiles
    patterns: tuple[str, ...] = DEFAULT_PATTERNS
    pattern_folder: str = ""
    """The folder of the patterns; they match paths relative to it and to the root."""
    used: set[str] = field(default_factory=set)
    """Referenced files and folders."""
    answers: set[str] = field(default_factory=set)
    """Referenced files with cases or assertions, which workers don't need and agents must not see."""
    version: FileVersion = FIRST

    @property
    def folder(self) -> str:
        """The eval file's folder; empty for the root of the upload."""
        return posixpath.dirname(self.document.file)

    def is_guideline(self, path: str) -> bool:
        """Return whether a file is a guideline and not part of the question."""
        below = self.pattern_folder + "/"
        relative_names = [path.removeprefix(below)] if self.pattern_folder and path.startswith(below) else []
        return any(is_guideline(name, self.patterns) for name in (path, *relative_names))

    def find_file(self, name: str) -> str | None:
        """Return a file's path in the upload, searched in the eval file's folder and those above."""
        return next((path for path in self._paths(name) if path in self.upload.files), None)

    def find_folder(self, name: str) -> str | None:
        """Return a folder's path in the upload, searched the same way; empty for the root."""
        for path in self._paths(name):
            if path in (".", "") or path in self.upload.folders:
                return "" if path == "." else path
        return None

    def missing(self, at: Location, name: str) -> Problem:
        """Return the problem of a missing or forbidden file."""
        if not any(self._paths(name)):
            return self.document.problem(
                at,
                f"'{name}' is outside the upload.",
                fix="Upload the folder above, which has the file."
                if name.startswith("../")
                else "Name a file in the upload, without a drive letter and without leaving its root.",
                id="format/file-outside",
            )
        return self.document.problem(
            at,
            f"The file '{name}' is not in the upload.",
            fix="Upload the folder with the eval file and everything it references.",
            id="format/missing-file",
        )

    def _paths(self, name: str) -> Iterator[str]:
        # A leading slash means the repository's root, the last folder of every search.
        relative = name.removeprefix("file://").replace("\\", "/").lstrip("/")
        for folder in folders_above(self.folder):
            if relative and (path := inside(folder, relative)) is not None:
                yield path


def folders_above(folder: str) -> Iterator[str]:
    """Yield a folder and its parents, ending with the root as empty text."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""
