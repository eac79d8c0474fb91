"""Eval files of AgentV: YAML with `evalcases` or JSONL datasets. Each file is a suite."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from evaluators.model import Json
from evaluators.tool_use.recognised_files import is_agentv_suite
from scenarios.formats.parsed import ParsedSuite, PositionedDocument, Problem
from scenarios.formats.upload import TARGETS_FILES, Format, Parsed, UploadedFiles

NAME = "agentv"
_NAMES_A_FILE = frozenset(("prompt", "file", "value", "path", "cwd", "include", "tests", "default_test"))
_JUDGED_BY = frozenset(("criteria", "expected_outcome", "expected_output", "assertions", "assert"))


def matches(path: str, value: Json) -> bool:
    """Return whether a document is an eval file, by its cases or schema, or a dataset, by its lines."""
    if path.lower().endswith(".jsonl"):
        return isinstance(value, list) and any(map(_is_case, value))
    if not path.lower().endswith((".yaml", ".yml")) or not isinstance(value, dict):
        return False
    if str(value.get("$schema", "")).startswith("agentv-eval"):
        return True
    return is_agentv_suite(value)


def _is_case(value: Json) -> bool:
    if not isinstance(value, dict) or "id" not in value:
        return False
    later = "input" in value and bool(_JUDGED_BY & value.keys())
    return "input_messages" in value or later


def parse(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> Parsed:
    """Parse each eval file as one suite."""
    # Imported here and below because importing takes longer than parsing.
    from scenarios.formats.agentv.eval_files import read_eval_file

    documents = _drop_included(documents, upload)
    evals = frozenset(document.file for document in documents)
    names = upload.name_suites(documents)
    suites: list[ParsedSuite] = []
    problems: list[Problem] = []
    for document in documents:
        suite, file_problems = read_eval_file(document, upload, evals, names[document.file])
        suites += [suite] if suite else []
        problems += file_problems
    problems += _same_names(suites, documents)
    if suites:
        lints = {*suites[0].lints, *map(_program_lint, filter(is_program, upload.files))}
        suites[0] = replace(suites[0], lints=tuple(sorted(lints)))
    return Parsed.of(suites, problems)


def is_program(path: str) -> bool:
    """Return whether a file is an eval of AgentV written in TypeScript."""
    return path.lower().endswith((".eval.ts", ".eval.mts"))


def _program_lint(path: str) -> Problem:
    what, fix = "An eval in TypeScript is a program, so it was not read.", "Write its cases as YAML."
    return Problem(file=path, line=1, where="", what=what, fix=fix, id="format/eval-program", lint=True)


def _drop_included(
    documents: Sequence[PositionedDocument], upload: UploadedFiles
) -> list[PositionedDocument]:
    """Return the documents that no other one includes as its cases."""
    from evaluators.tool_use.guidelines import BadGlob
    from scenarios.formats.agentv.file_versions import EvalFileContext
    from scenarios.formats.agentv.imported_cases import case_files, find_case_files

    included: set[str] = set()
    for document in documents:
        if isinstance(document.value, dict):
            context = EvalFileContext(document, upload)
            for name in case_files(document.value):
                with suppress(BadGlob):
                    included.update(find_case_files(name, context))
    return [document for document in documents if document.file not in included]


def _same_names(suites: Sequence[ParsedSuite], documents: Sequence[PositionedDocument]) -> list[Problem]:
    counts = Counter(suite.name for suite in suites)
    if len(suites) != len(documents):
        return []
    return [
        document.problem(
            ("dataset",),
            f"Another eval file of the upload also has the suite name '{suite.name}'.",
            fix="Give each file its own 'dataset:'.",
            id="format/duplicate-suite",
        )
        for suite, document in zip(suites, documents, strict=True)
        if counts[suite.name] > 1
    ]


def fixture_folders(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> frozenset[str]:
    """Return none: files of an eval file are not in the workspace."""
    return frozenset()


def companions(document: PositionedDocument) -> tuple[str, ...]:
    """Return the paths that an eval file references, to read a single file."""
    from scenarios.formats.agentv.eval_files import find_sidecar
    from scenarios.formats.agentv.guideline_settings import ABOVE, BESIDE

    named = dict.fromkeys(_named_files(document.value))
    return (*named, BESIDE, ABOVE, *TARGETS_FILES, posixpath.basename(find_sidecar(document.file)))


def _named_files(value: Json) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _named_files(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("script", "command") and isinstance(item, str | list):
                from scenarios.formats.agentv.messages import script_files

                words = [item] if isinstance(item, str) else [each for each in item if isinstance(each, str)]
                yield from (name for word in words for name in script_files(word))
            elif key in _NAMES_A_FILE and isinstance(item, str) and _may_be_path(item):
                yield _before_glob(item.removeprefix("file://").lstrip("/"))
                if key == "include":
                    yield f".agentv/templates/{item}.yaml"
            elif key in ("tests", "input_files", "prompts") and isinstance(item, list):
                yield from (
                    _before_glob(one.removeprefix("file://"))
                    for one in item
                    if isinstance(one, str) and _may_be_path(one)
                )
                yield from _named_files(item)
            else:
                yield from _named_files(item)


def _before_glob(path: str) -> str:
    """Return the folder of a glob, or a path without one unchanged."""
    return path if not (glob := re.search(r"[^/]*[*?{]", path)) else path[: glob.start()] or path


def _may_be_path(text: str) -> bool:
    return len(text) < 300 and "\n" not in text and text.strip("/. ") != ""


FORMAT = Format(NAME, matches, parse, fixture_folders, companions)
