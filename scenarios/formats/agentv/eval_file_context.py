"""Where an eval file stands in its upload, and what it may refer to from there."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from evaluators.guidelines import DEFAULT_PATTERNS, is_guideline
from scenarios.formats.positions import Document, Location
from scenarios.formats.problems import Problem
from scenarios.formats.upload import UploadedFiles, inside


@dataclass(frozen=True)
class EvalFileContext:
    """One eval file with its surroundings."""

    document: Document
    upload: UploadedFiles
    patterns: tuple[str, ...] = DEFAULT_PATTERNS
    pattern_folder: str = ""
    """Where the patterns stand; they are compared with paths from there and from the root."""
    used: set[str] = field(default_factory=set)
    """Files and folders that the file refers to."""

    @property
    def folder(self) -> str:
        """The eval file's own folder; empty for the root of the upload."""
        return posixpath.dirname(self.document.file)

    def is_guideline(self, path: str) -> bool:
        """Tell whether a file is a guideline and no part of the question."""
        below = self.pattern_folder + "/"
        own = [path.removeprefix(below)] if self.pattern_folder and path.startswith(below) else []
        return any(is_guideline(name, self.patterns) for name in (path, *own))

    def find_file(self, name: str) -> str | None:
        """Return a file's path in the upload, sought beside the eval file, then in each folder above."""
        return next((path for path in self._paths(name) if path in self.upload.files), None)

    def find_folder(self, name: str) -> str | None:
        """Return a folder's path in the upload likewise; empty for its root."""
        for path in self._paths(name):
            if path in (".", "") or path in self.upload.folders:
                return "" if path == "." else path
        return None

    def missing(self, at: Location, name: str) -> Problem:
        """Say that a file is not there, or may not be."""
        if not any(self._paths(name)):
            return self.document.problem(
                at,
                f"'{name}' leads out of the upload.",
                fix="Name a file of the upload, without a drive and without steps above its root.",
                id="format/file-outside",
            )
        return self.document.problem(
            at,
            f"There is no file '{name}' in the upload.",
            fix="Upload the folder that holds both the eval file and what it refers to.",
            id="format/missing-file",
        )

    def _paths(self, name: str) -> Iterator[str]:
        # A leading slash means the root of a repository, which every search ends at.
        relative = name.replace("\\", "/").lstrip("/")
        for folder in folders_above(self.folder):
            if relative and (path := inside(folder, relative)) is not None:
                yield path


def folders_above(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, the root as empty text last."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""
