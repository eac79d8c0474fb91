"""Which version of AgentV an eval file is for, by its keys; and the file within its upload."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evaluators.model import Json
from evaluators.tool_use.guidelines import DEFAULT_PATTERNS, is_guideline
from scenarios.formats.parsed import Location, PositionedDocument, Problem
from scenarios.formats.upload import UploadedFiles, resolve_inside


@dataclass(frozen=True)
class FileVersion:
    """The rules of a version."""

    cases: str
    """The key of the cases; empty for a JSONL dataset."""
    threshold: float
    """The lowest passing aggregate of files without their own."""
    is_later: bool = False
    """Whether AgentV 4 reads it: defaults are added to a case's own assertions, texts are statements of a rubric."""
    has_matrix: bool = False
    """Whether prompts are apart from tests, as in AgentV after 4.42; then `not-` negates an assertion."""


FIRST = FileVersion("evalcases", 1.0)
SECOND = FileVersion("eval_cases", 1.0)
PUBLISHED = FileVersion("tests", 0.8, is_later=True)
MATRIX = FileVersion("tests", 0.8, is_later=True, has_matrix=True)
OF_MATRIX = frozenset(
    ("prompts", "providers", "default_test", "evaluate_options", "environment", "extensions", "scenarios")
)
"""Keys of files after AgentV 4.42."""
CASES_KEYS = ("evalcases", "eval_cases", "tests")

Spellings = Mapping[str, tuple[str, ...]]
"""The names of a key in all versions, by the name in this package."""
OF_CASE: Spellings = {
    "input_messages": ("input_messages", "input"),
    "expected_messages": ("expected_messages", "expected_output"),
    "expected_outcome": ("expected_outcome", "outcome", "criteria"),
    "evaluators": ("evaluators", "assertions", "assert"),
    "note": ("note", "description"),
}
OF_LIST: Spellings = {"evaluators": ("evaluators", "assertions", "assert")}
"""In a file, its `execution`, `default_test` and groups of assertions."""


def version_of_file(value: Mapping[str, Json]) -> FileVersion:
    """Return the version of a YAML file by its keys."""
    imports_only = "imports" in value and not {"evalcases", "eval_cases"} & value.keys()
    if "tests" in value or "scenarios" in value or imports_only:
        return MATRIX if OF_MATRIX & value.keys() else PUBLISHED
    return SECOND if "eval_cases" in value else FIRST


def version_of_dataset(lines: Json) -> FileVersion:
    """Return the version of a JSONL dataset by the keys of its lines, which are cases."""
    first = next((line for line in lines if isinstance(line, dict)), {})
    later = "input_messages" not in first and ("input" in first or "vars" in first)
    return FileVersion("", 0.8, is_later=True) if later else FileVersion("", 1.0)


_ONLY_LATER_OF_FILE = frozenset(
    (
        "name",
        "suite",
        "threshold",
        "evaluators",
        "input",
        "input_files",
        "targets",
        "timeout_seconds",
        "repeat",
    )
)
_ONLY_LATER_OF_CASE = frozenset(("description", "threshold", "vars", "input_files"))


def without_later_keys(
    value: Mapping[str, Json], version: FileVersion, document: PositionedDocument, at: Location
) -> tuple[dict[str, Json], list[Problem]]:
    """Return a file, or a case at its place, without keys that its version ignores, and a lint for each."""
    if version.is_later:
        return dict(value), []
    ignored = [key for key in value if key in (_ONLY_LATER_OF_CASE if at else _ONLY_LATER_OF_FILE)]
    what, fix = "Unknown key '{}'.", "The key is ignored, as in this version of AgentV. Remove it."
    lints = [
        document.problem((*at, key), what.format(key), fix=fix, id="format/unknown-key", lint=True)
        for key in ignored
    ]
    return {key: item for key, item in value.items() if key not in ignored}, lints


def unify_keys(
    value: Mapping[str, Json], spellings: Spellings, document: PositionedDocument, at: Location
) -> tuple[dict[str, Json], dict[str, str], list[Problem]]:
    """Return a mapping without empty values and with this package's keys, how the file spells them, and problems.

    Two spellings of one key are an error.
    """
    fields = {key: item for key, item in value.items() if item is not None}
    spelled: dict[str, str] = {}
    problems = []
    for name, names in spellings.items():
        used = [spelling for spelling in names if spelling in fields]
        if len(used) > 1:
            what = f"'{used[0]}' and '{used[1]}' are the same key in different versions of AgentV."
            fix = "Keep one of them."
            problems.append(document.problem((*at, used[1]), what, fix=fix, id="format/repeated-key"))
        for spelling in used[1:]:
            del fields[spelling]
        if used and used[0] != name:
            fields[name] = fields.pop(used[0])
            spelled[name] = used[0]
    return fields, spelled, problems


def messages_of(value: Json, role: str) -> Json:
    """Return a text, structured data or a single message as a list of messages; other values unchanged."""
    if isinstance(value, dict) and "role" in value:
        return [value]
    is_messages = isinstance(value, list) and (
        not value or any(isinstance(one, dict) and "role" in one for one in value)
    )
    if (
        is_messages
        or (isinstance(value, list) and role == "user")
        or not isinstance(value, str | dict | list)
    ):
        return value
    return [{"role": role, "content": value}]


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
            if relative and (path := resolve_inside(folder, relative)) is not None:
                yield path


def folders_above(folder: str) -> Iterator[str]:
    """Yield a folder and its parents, ending with the root as empty text."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""
