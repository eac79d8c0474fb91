"""What a file format gets to see, and what it gives back."""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, takewhile

from evaluators.model import Json
from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite
from scenarios.formats.positions import Document
from scenarios.formats.problems import Problem


@dataclass(frozen=True)
class UploadedFiles:
    """Every file that came at once. Paths are relative, with forward slashes, and hold no `..`."""

    name: str
    files: Mapping[str, bytes]
    executables: frozenset[str] = frozenset()
    command_pattern: str = ""
    """The pattern of the whole project, for scenarios that have none."""
    strict: bool = False
    """Whether what is otherwise a lint of an eval case's assertions refuses its file."""
    decoded: Mapping[str, Document] = field(default_factory=dict)
    """Files that somebody decoded before, by path: a large file takes seconds."""

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds a file, at any depth."""
        found: set[str] = set()
        for path in self.files:
            while path := posixpath.dirname(path):
                found.add(path)
        return frozenset(found)

    def below(self, folder: str) -> Fixture:
        """Return the files of a folder, with paths relative to it."""
        prefix = folder + "/"
        start = bisect_left(self._sorted, prefix)
        below = takewhile(lambda path: path.startswith(prefix), islice(self._sorted, start, None))
        return tuple(
            FixtureFile(path.removeprefix(prefix), self.files[path], executable=path in self.executables)
            for path in below
        )

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.files)


@dataclass(frozen=True)
class Parsed:
    """The suites that a format read, and every problem; with problems the suites do not count."""

    suites: tuple[ParsedSuite, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Format:
    """One file format, as a line of `FORMATS`."""

    name: str
    matches: Callable[[str, Json], bool]
    """Tells from a path and its decoded document whether a file is a scenario file of this format."""
    parse: Callable[[UploadedFiles, Sequence[Document]], Parsed]
    """Reads all matching documents of an upload; never raises for what is in them."""
    fixture_folders: Callable[[UploadedFiles, Sequence[Document]], frozenset[str]]
    """Folders of the upload that documents use as fixtures: what is in them is no scenario."""
    companions: Callable[[Document], tuple[str, ...]]
    """Files and folders that a document names, relative to its own folder, for reading a file alone."""


def inside(base: str, path: str) -> str | None:
    """Return a path of the upload, or None when it is absolute or leads out."""
    if path.startswith(("/", "\\")) or "\\" in path or "\0" in path or path[1:2] == ":":
        return None
    joined = posixpath.normpath(posixpath.join(base, path))
    return None if joined == ".." or joined.startswith("../") else joined


def in_fixture(path: str, fixtures: Set[str]) -> bool:
    """Tell whether a file is content of a fixture; a sub-folder called `scenarios` never is."""
    folder = path
    while folder := posixpath.dirname(folder):
        if folder in fixtures:
            return "scenarios" not in path.removeprefix(folder + "/").split("/")[:-1]
    return False


TARGETS_FILES = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
_NAMES = {"targets.yaml", "targets.yml"}


def find_targets_file(upload: UploadedFiles) -> tuple[str, str]:
    """Return path and text of the targets file nearest to the root, or two empty texts."""
    found = [path for path in upload.files if is_targets_file(path) and "templates" not in path.split("/")]
    if not found:
        return "", ""
    path = min(found, key=lambda path: (path.count("/"), path))
    return path, upload.files[path].decode("utf-8", errors="replace")


def is_targets_file(path: str) -> bool:
    """Tell a targets file by its name."""
    return posixpath.basename(path) in _NAMES
