"""The uploaded files that formats read, which are scenario files, and the results that formats return."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, takewhile

from evaluators.model import Json
from evaluators.transcripts.reading import decode_text
from scenarios.formats.parsed import (
    Fixture,
    FixtureFile,
    ParsedSuite,
    PositionedDocument,
    Problem,
    ScenarioFileError,
)
from scenarios.formats.text_files import EMPTY, read_json, read_jsonl
from scenarios.formats.yaml_text import read_yaml

READERS = {".yaml": read_yaml, ".yml": read_yaml, ".json": read_json, ".jsonl": read_jsonl}
_HEAD = 1_000
"""Lines in which a file of JSON lines shows what it is."""
_EVAL_NAME = re.compile(
    r"(?:^|[./_-])evals?(?:[./_-]|$)|\.(?:golden|labeled|regression|perturbation)\.json$", re.IGNORECASE
)


@dataclass
class Candidates:
    """Scenario files by format name, and problems of files that cannot be decoded."""

    documents: dict[str, list[PositionedDocument]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    fixtures: frozenset[str] = frozenset()
    """Folders used as fixtures."""


def find_candidates(upload: UploadedFiles, formats: Sequence[Format]) -> Candidates:
    """Decode possible scenario files and group them by format, skipping files in fixtures."""
    candidates = Candidates()
    for path in sorted(upload.files, key=lambda path: (path.count("/"), path)):
        if posixpath.splitext(path)[1].lower() in READERS and not _in_template(path):
            _decode_candidate(candidates, upload, path, formats)
    fixtures = [
        folder
        for format_ in formats
        if format_.name in candidates.documents
        for folder in format_.fixture_folders(upload, candidates.documents[format_.name])
    ]
    return _outside_fixtures(candidates, frozenset(fixtures))


def decode_file(path: str, content: bytes) -> PositionedDocument:
    """Decode a file by its extension. Raises `ScenarioFileError`."""
    return READERS.get(posixpath.splitext(path)[1].lower(), read_yaml)(content, path)


def _decode_candidate(
    candidates: Candidates, upload: UploadedFiles, path: str, formats: Sequence[Format]
) -> None:
    if path.lower().endswith(".jsonl") and _is_long_log(upload.files[path]):
        return
    try:
        document = upload.decoded.get(path) or decode_file(path, upload.files[path])
    except ScenarioFileError as error:
        if len(upload.files) > 1 and all(problem.id == EMPTY for problem in error.problems):
            return
        if _must_be_readable(upload, path):
            candidates.problems += error.problems
        return
    format_ = next((each for each in formats if each.matches(path, document.value)), None)
    if format_ is not None:
        candidates.documents.setdefault(format_.name, []).append(document)


def _is_long_log(content: bytes) -> bool:
    """Return whether the first of many JSON lines have no id, as cases do; decoding a million takes long."""
    lines = decode_text(content, "replace").split("\n", _HEAD)
    return len(lines) > _HEAD and not any('"id"' in line for line in lines[:_HEAD])


def _must_be_readable(upload: UploadedFiles, path: str) -> bool:
    """Return whether a broken file is a problem: bundles contain other JSON, so only eval files must be valid."""
    if not path.lower().endswith((".json", ".jsonl")):
        return True
    # JSONL logs often lie next to eval files, so only the file's own name counts.
    named = posixpath.basename(path) if path.lower().endswith(".jsonl") else path
    return len(upload.files) == 1 or _EVAL_NAME.search(named) is not None


def _in_template(path: str) -> bool:
    folders = path.split("/")[:-1]
    return "templates" in folders and "scenarios" not in folders[folders.index("templates") :]


def _outside_fixtures(candidates: Candidates, fixtures: frozenset[str]) -> Candidates:
    documents = {
        name: sorted(remaining, key=lambda document: document.file)
        for name, all_ in candidates.documents.items()
        if (remaining := [document for document in all_ if not in_fixture(document.file, fixtures)])
    }
    problems = [problem for problem in candidates.problems if not in_fixture(problem.file, fixtures)]
    return Candidates(documents, problems, fixtures)


@dataclass(frozen=True)
class UploadedFiles:
    """The files of one upload. Paths are relative, with forward slashes and without `..`."""

    name: str
    files: Mapping[str, bytes]
    executables: frozenset[str] = frozenset()
    command_pattern: str = ""
    """The project's pattern, for scenarios without one."""
    variables: frozenset[str] | None = None
    """Names of the variables that `target.env` may name; None if they are unknown."""
    strict: bool = False
    """Whether lints about assertions of eval cases reject their file."""
    decoded: Mapping[str, PositionedDocument] = field(default_factory=dict)
    """Documents decoded earlier, by path, because a large file takes seconds."""

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder with files at any depth."""
        folders: set[str] = set()
        for path in self.files:
            while path := posixpath.dirname(path):
                folders.add(path)
        return frozenset(folders)

    def below(self, folder: str) -> Fixture:
        """Return the files below a folder, with paths relative to it."""
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

    def name_suites(self, documents: Sequence[PositionedDocument]) -> dict[str, str]:
        """Return a name for the suite of each document by its file: the stem, with the path if two are equal.

        That of a single file has the upload's name.
        """
        stems = {document.file: posixpath.splitext(document.file)[0] for document in documents}
        if len(self.files) == 1:
            return dict.fromkeys(stems, self.name)
        counts = Counter(map(posixpath.basename, stems.values()))
        return {
            file: stem if counts[posixpath.basename(stem)] > 1 else posixpath.basename(stem)
            for file, stem in stems.items()
        }


@dataclass(frozen=True)
class Parsed:
    """The suites of a format and all problems; with problems, the suites do not count."""

    suites: tuple[ParsedSuite, ...] = ()
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, suites: Sequence[ParsedSuite], problems: Sequence[Problem]) -> Parsed:
        """Return the suites, which have their lints themselves, or every problem if one isn't a lint."""
        if all(problem.lint for problem in problems):
            return cls(suites=tuple(suites))
        return cls(problems=tuple(sorted(dict.fromkeys(problems))))


@dataclass(frozen=True)
class Format:
    """One file format, an entry of `FORMATS`."""

    name: str
    matches: Callable[[str, Json], bool]
    """Returns whether a file belongs to this format, by its path and decoded value."""
    parse: Callable[[UploadedFiles, Sequence[PositionedDocument]], Parsed]
    """Parses all matching documents of an upload; never raises because of their content."""
    fixture_folders: Callable[[UploadedFiles, Sequence[PositionedDocument]], frozenset[str]]
    """Returns the folders and files used as fixtures; they have no scenarios."""
    companions: Callable[[PositionedDocument], tuple[str, ...]]
    """Returns the files and folders that a document references, relative to its folder, to read a single file."""


def resolve_inside(base: str, path: str) -> str | None:
    """Return a path of the upload, or None if it is absolute or leads outside."""
    if path.startswith(("/", "\\")) or "\\" in path or "\0" in path or path[1:2] == ":":
        return None
    joined = posixpath.normpath(posixpath.join(base, path))
    return None if joined == ".." or joined.startswith("../") else joined


def is_below(folder: str, path: str) -> bool:
    """Return whether a path is a folder or lies in it; everything lies in the empty one, the root."""
    return not folder or path == folder or path.startswith(folder + "/")


def in_fixture(path: str, fixtures: Set[str]) -> bool:
    """Return whether a file is in a fixture, or is one itself; subfolders called `scenarios` are not."""
    if path in fixtures:
        return True
    folder = path
    while folder := posixpath.dirname(folder):
        if folder in fixtures:
            return "scenarios" not in path.removeprefix(folder + "/").split("/")[:-1]
    return False


TARGETS_FILES = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
_NAMES = {"targets.yaml", "targets.yml"}


def find_targets_file(upload: UploadedFiles) -> tuple[str, str]:
    """Return path and text of the targets file nearest to the root, else two empty texts."""
    paths = [path for path in upload.files if is_targets_file(path) and "templates" not in path.split("/")]
    if not paths:
        return "", ""
    path = min(paths, key=lambda path: (path.count("/"), path))
    return path, decode_text(upload.files[path], "replace")


def is_targets_file(path: str) -> bool:
    """Return whether a path is a targets file, by its name."""
    return posixpath.basename(path) in _NAMES
