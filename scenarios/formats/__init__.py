"""Parse files into suites. Every format is one entry of `FORMATS`; code outside does not depend on the format."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.patterns import pattern_budget
from scenarios.formats import agent_skills, agentv, llm_tool_test, tool_forge
from scenarios.formats.candidates import decode_file, find_candidates
from scenarios.formats.other_programs import problems_of_others
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.positions import PositionedDocument
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.solutions import split_solutions, with_solutions
from scenarios.formats.tool_places import with_tool_hints
from scenarios.formats.upload import Format, UploadedFiles

FORMATS: tuple[Format, ...] = (agent_skills.FORMAT, agentv.FORMAT, llm_tool_test.FORMAT, tool_forge.FORMAT)
"""The formats in matching order, the strictest first."""


def parse_files(
    files: Mapping[str, bytes],
    *,
    name: str,
    command_pattern: str = "",
    executables: frozenset[str] = frozenset(),
    variables: frozenset[str] | None = None,
    strict: bool = False,
    decoded: Mapping[str, PositionedDocument] | None = None,
) -> tuple[ParsedSuite, ...]:
    """Return the suites in a set of files. Raises `ScenarioFileError` with every problem of every file.

    `name` is the name of the folder or bundle, or the stem of a single file. Paths are relative, with forward
    slashes. `command_pattern` is the project's, for scenarios without one. `variables` are the names that `target.env` may
    name, None if unknown. `strict` rejects eval cases that assert
    nothing or have unknown keys. `decoded` are documents decoded earlier.
    """
    upload = UploadedFiles(name, files, executables, command_pattern, variables, strict, decoded or {})
    candidates = find_candidates(upload, FORMATS)
    documents = [document for same_format in candidates.documents.values() for document in same_format]
    upload, scripts = split_solutions(upload, documents, candidates.fixtures)
    with pattern_budget():
        parsed = [
            format_.parse(upload, candidates.documents[format_.name])
            for format_ in FORMATS
            if format_.name in candidates.documents
        ]
    problems = [*candidates.problems, *(problem for part in parsed for problem in part.problems)]
    suites = tuple(suite for part in parsed for suite in part.suites)
    if not problems and not suites:
        problems = problems_of_others(upload.files) or [_nothing_found(upload)]
    if problems:
        lints = [lint for suite in suites for lint in suite.lints]
        raise ScenarioFileError(list(dict.fromkeys([*problems, *lints])))
    return with_tool_hints(with_solutions(suites, scripts), upload.files)


def _nothing_found(upload: UploadedFiles) -> Problem:
    file = next(iter(upload.files)) if len(upload.files) == 1 else upload.name
    return Problem(
        file=file,
        line=1,
        where="",
        what="The upload contains no scenario.",
        fix=(
            "A scenario of llm-tool-test is a YAML file with the keys name, task and evaluation; "
            "eval cases of tool-forge are a JSON list, or an object with the key cases; "
            "an eval file of AgentV is a YAML file with the key evalcases; "
            "evals of a skill are its folder with SKILL.md and evals/evals.json."
        ),
        id="format/no-scenario",
    )


def detect_format(file: str, content: bytes) -> str:
    """Return the name of a file's format, empty if it has none or cannot be decoded."""
    document = decode_by_extension(file, content)
    return next((each.name for each in FORMATS if document and each.matches(file, document.value)), "")


def companions(file: str, content: bytes) -> tuple[str, ...]:
    """Return the paths that a scenario file references, relative to its folder; nothing for other files."""
    document = decode_by_extension(file, content)
    return companions_of(document) if document else ()


def decode_by_extension(file: str, content: bytes) -> PositionedDocument | None:
    """Decode a file by its extension, None if it cannot be decoded."""
    try:
        return decode_file(file, content)
    except ScenarioFileError:
        return None


def companions_of(document: PositionedDocument) -> tuple[str, ...]:
    """Return `companions` of a decoded file."""
    for format_ in FORMATS:
        if format_.matches(document.file, document.value):
            return format_.companions(document)
    return ()
