"""Read guideline patterns and targets next to an eval file (AgentV evaluation, Guideline Pattern Configuration)."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from evaluators.tool_use.guidelines import DEFAULT_PATTERNS, BadGlob, matcher
from evaluators.transcripts.reading import decode_text
from scenarios.formats.agentv.eval_models import GuidelineSettings
from scenarios.formats.agentv.file_versions import folders_above
from scenarios.formats.parsed import PositionedDocument, Problem, ScenarioFileError, validate
from scenarios.formats.secrets import secret_problems
from scenarios.formats.upload import TARGETS_FILES, UploadedFiles, find_targets_file
from scenarios.formats.yaml_text import read_yaml

BESIDE = ".agentv.yaml"
ABOVE = ".agentv/config.yaml"


def read_patterns(upload: UploadedFiles, file: str) -> tuple[tuple[str, ...], str, list[Problem]]:
    """Return the guideline patterns of an eval file, their folder, and problems.

    `.agentv.yaml` next to the file has priority over the nearest `.agentv/config.yaml`. Without patterns in
    either, the defaults apply.
    """
    problems: list[Problem] = []
    folder = posixpath.dirname(file)
    places = [(folder, BESIDE), *((above, ABOVE) for above in folders_above(folder))]
    for base, name in places:
        path = posixpath.join(base, name)
        if path not in upload.files:
            continue
        patterns, file_problems = _read(upload, path)
        problems += file_problems
        if patterns is not None:
            return tuple(patterns), base, problems
    return DEFAULT_PATTERNS, "", problems


def find_targets(upload: UploadedFiles, file: str) -> tuple[str, str, list[Problem]]:
    """Return path and text of the targets file nearest to an eval file, and problems of literal secrets."""
    nearest = (
        path
        for folder in folders_above(posixpath.dirname(file))
        for name in TARGETS_FILES
        if (path := posixpath.join(folder, name)) in upload.files
    )
    path = next(nearest, "") or find_targets_file(upload)[0]
    if not path:
        return "", "", []
    try:
        problems = secret_problems(read_yaml(upload.files[path], path))
    except ScenarioFileError as error:
        return path, "", list(error.problems)
    return path, decode_text(upload.files[path], "replace"), problems


def _read(upload: UploadedFiles, path: str) -> tuple[Sequence[str] | None, list[Problem]]:
    try:
        document = read_yaml(upload.files[path], path)
    except ScenarioFileError as error:
        return None, list(error.problems)
    settings, problems = validate(GuidelineSettings, document.value, document)
    if settings is None or settings.guideline_patterns is None:
        return None, problems
    bad = _bad_globs(settings.guideline_patterns, document)
    good = [pattern for index, pattern in enumerate(settings.guideline_patterns) if index not in bad]
    return good, [*problems, *bad.values()]


def _bad_globs(patterns: Sequence[str], document: PositionedDocument) -> dict[int, Problem]:
    """Return the problems of invalid patterns by index."""
    problems = {}
    for index, pattern in enumerate(patterns):
        try:
            matcher(pattern)
        except BadGlob as error:
            at = ("guideline_patterns", index)
            problems[index] = document.problem(at, str(error), fix="Fix the pattern.", id="format/bad-glob")
    return problems
