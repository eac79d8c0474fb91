"""Files in, suites out: every format is one line of `FORMATS`, and past here nobody knows which it was."""

from __future__ import annotations

from collections.abc import Mapping

from scenarios.formats import agentv, llm_tool_test, tool_forge
from scenarios.formats.candidates import decode_file, find_candidates
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.positions import Document
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.upload import Format, UploadedFiles

FORMATS: tuple[Format, ...] = (agentv.FORMAT, llm_tool_test.FORMAT, tool_forge.FORMAT)
"""In the order in which they are asked whether a file is theirs; the strictest first."""


def parse_files(
    files: Mapping[str, bytes],
    *,
    name: str,
    command_pattern: str = "",
    executables: frozenset[str] = frozenset(),
    strict: bool = False,
    decoded: Mapping[str, Document] | None = None,
) -> tuple[ParsedSuite, ...]:
    """Return the suites in a set of files.

    `name` is that of the folder or bundle, or the stem of a file alone. Paths are relative, with forward slashes.
    `command_pattern` is the project's, for scenarios without one. `strict` refuses eval cases that assert
    nothing or something unknown. `decoded` are files that were decoded before. Raises `ScenarioFileError` with every problem
    of every file, and nothing else.
    """
    upload = UploadedFiles(name, files, executables, command_pattern, strict, decoded or {})
    found = find_candidates(upload, FORMATS)
    parsed = [
        format_.parse(upload, found.documents[format_.name])
        for format_ in FORMATS
        if format_.name in found.documents
    ]
    problems = [*found.problems, *(problem for part in parsed for problem in part.problems)]
    suites = tuple(suite for part in parsed for suite in part.suites)
    if not problems and not suites:
        problems = [_nothing_found(upload)]
    if problems:
        lints = [lint for suite in suites for lint in suite.lints]
        raise ScenarioFileError(list(dict.fromkeys([*problems, *lints])))
    return suites


def _nothing_found(upload: UploadedFiles) -> Problem:
    file = next(iter(upload.files)) if len(upload.files) == 1 else upload.name
    return Problem(
        file=file,
        line=1,
        where="",
        what="There is no scenario in it.",
        fix=(
            "A scenario of llm-tool-test is a YAML file with the keys name, task and evaluation; "
            "eval cases of tool-forge are a JSON list, or an object with the key cases; "
            "an eval file of AgentV is a YAML file with the key evalcases."
        ),
        id="format/no-scenario",
    )


def format_of(file: str, content: bytes) -> str:
    """Return the name of the format that takes a file; empty when none does, or when it cannot be decoded."""
    document = decode(file, content)
    return next((each.name for each in FORMATS if document and each.matches(file, document.value)), "")


def companions(file: str, content: bytes) -> tuple[str, ...]:
    """Return the paths that a scenario file names, relative to its folder; nothing when it is none."""
    document = decode(file, content)
    return companions_of(document) if document else ()


def decode(file: str, content: bytes) -> Document | None:
    """Return a file decoded by its ending, None where that is not possible."""
    try:
        return decode_file(file, content)
    except ScenarioFileError:
        return None


def companions_of(document: Document) -> tuple[str, ...]:
    """Return what `companions` does, for a file that is decoded already."""
    for format_ in FORMATS:
        if format_.matches(document.file, document.value):
            return format_.companions(document)
    return ()
