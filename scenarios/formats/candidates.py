"""Find the scenario files of an upload and their formats."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluators.transcripts.reading import decode_text
from scenarios.formats.json_text import read_json, read_jsonl
from scenarios.formats.positions import PositionedDocument
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.text_decoding import EMPTY
from scenarios.formats.upload import Format, UploadedFiles, in_fixture
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
