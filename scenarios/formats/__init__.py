"""Parse files into suites. Every format is one entry of `FORMATS`; code outside does not depend on the format."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from evaluators.patterns import pattern_budget
from scenarios.formats import agent_skills, agentv, llm_tool_test, tool_forge
from scenarios.formats.other_programs import problems_of_others
from scenarios.formats.parsed import ParsedSuite, PositionedDocument, Problem, ScenarioFileError
from scenarios.formats.solutions import split_solutions, with_solutions
from scenarios.formats.tool_places import with_tool_hints
from scenarios.formats.upload import Candidates, Format, Parsed, UploadedFiles, decode_file, find_candidates

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
        parsed = {
            format_.name: format_.parse(upload, candidates.documents[format_.name])
            for format_ in FORMATS
            if format_.name in candidates.documents
        }
        skills = parsed.get(agent_skills.NAME)
        if skills and skills.suites:
            parsed, problems = _leave_out_broken(upload, candidates, parsed)
        else:
            problems = [*candidates.problems, *(each for part in parsed.values() for each in part.problems)]
    suites = tuple(suite for part in parsed.values() for suite in part.suites)
    if not problems and not suites:
        # Imported here because importing takes longer than parsing.
        from scenarios.formats.agent_skills.eval_files import problems_without_cases

        problems = [*problems_of_others(upload.files), *problems_without_cases(upload)]
        problems = problems or [_nothing_found(upload)]
    if problems:
        lints = [lint for suite in suites for lint in suite.lints]
        raise ScenarioFileError(list(dict.fromkeys([*problems, *lints])))
    return with_tool_hints(with_solutions(suites, scripts), upload.files)


def _leave_out_broken(
    upload: UploadedFiles, candidates: Candidates, parsed: Mapping[str, Parsed]
) -> tuple[dict[str, Parsed], list[Problem]]:
    """Return what is parsed of an upload with a skill, and what refuses it: another program's broken file is a hint."""
    of_skills = {posixpath.dirname(document.file) for document in candidates.documents[agent_skills.NAME]}
    own = [each for each in candidates.problems if _lies_in(each.file, of_skills)]
    broken = [each for each in candidates.problems if not _lies_in(each.file, of_skills)]
    kept = dict(parsed)
    for format_ in FORMATS:
        part = parsed.get(format_.name)
        if part is None or not part.problems:
            continue
        rest, errors = _sort_out(format_, upload, candidates.documents[format_.name])
        again = format_.parse(upload, rest) if rest else Parsed()
        if again.problems:
            # What is wrong is between the files.
            errors += [replace(again.problems[0], file=each.file) for each in rest]
            again = Parsed()
        kept[format_.name] = again
        broken += errors
    first, *others = kept[agent_skills.NAME].suites
    lints = (*first.lints, *(left_out for left_out in _left_out(broken)))
    kept[agent_skills.NAME] = Parsed((replace(first, lints=lints), *others))
    return kept, own


def _sort_out(
    format_: Format, upload: UploadedFiles, documents: Sequence[PositionedDocument]
) -> tuple[list[PositionedDocument], list[Problem]]:
    """Return the documents that can be read, and the first error of each other, which may be in a file that it names."""
    sound: list[PositionedDocument] = []
    errors: list[Problem] = []
    named: set[str] = set()
    for document in documents:
        found = [each for each in format_.parse(upload, [document]).problems if not each.lint]
        if not found:
            sound.append(document)
            continue
        error, folder = found[0], posixpath.dirname(document.file)
        if error.file != document.file:
            error = replace(error, file=document.file, line=1, what=f"{error.file}: {error.what}")
        errors.append(error)
        named |= {posixpath.normpath(posixpath.join(folder, each)) for each in format_.companions(document)}
    return [each for each in sound if each.file not in named], errors


def _lies_in(file: str, folders: Set[str]) -> bool:
    folder = posixpath.dirname(file)
    return folder in folders or posixpath.basename(folder) in agent_skills.FOLDERS


def _left_out(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yield a hint for each file with problems, with the first of them."""
    for each in {problem.file: problem for problem in reversed(problems)}.values():
        yield replace(each, what=f"This file is left out: {each.what}", id="format/file-left-out", lint=True)


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
