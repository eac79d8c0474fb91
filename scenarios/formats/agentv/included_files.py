"""Read files that an eval file includes: cases, assertions, prompts and shared defaults."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluators.model import Json
from evaluators.tool_use.guidelines import BadGlob, matcher
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.candidates import READERS, decode_file
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.upload import inside

PREFIX = "file://"
_TEMPLATES = ".agentv/templates"
_CASE_FILES = ("case.yaml", "case.yml")
_GLOB = re.compile(r"[*?{]")
_SUITES = (".eval.yaml", ".eval.yml")
"""Endings of files that are suites of their own, even if others import their cases."""
Case = tuple[EvalFileContext, Json, Location]
"""A case with the file that it is in and its place there."""


def read_include(
    name: Json, context: EvalFileContext, at: Location, problems: list[Problem]
) -> PositionedDocument | None:
    """Return the file of an `include`, a path or the name of a template; None with a problem if it isn't there."""
    text = name if isinstance(name, str) else ""
    is_template = bool(text) and not text.startswith(".") and "/" not in text and "\\" not in text
    tried = [f"{_TEMPLATES}/{text}.yaml", f"{_TEMPLATES}/{text}.yml"] if is_template else [text]
    path = next((found for each in tried if (found := context.find_file(each))), None)
    return _decode(path, tried[0], context, at, problems)


def read_named(
    name: str, context: EvalFileContext, at: Location, problems: list[Problem]
) -> PositionedDocument | None:
    """Return a file of cases or defaults; None with a problem if it isn't there or can't be read."""
    shown = name.removeprefix(PREFIX)
    return _decode(context.find_file(shown), shown, context, at, problems)


def _decode(
    path: str | None, shown: str, context: EvalFileContext, at: Location, problems: list[Problem]
) -> PositionedDocument | None:
    if path is None:
        problems.append(context.missing(at, shown))
        return None
    context.answers.add(path)
    if posixpath.splitext(path)[1].lower() not in READERS:
        what = f"evalhub can't read '{shown}'."
        fix = "Use YAML, JSON or JSON lines."
        problems.append(context.document.problem(at, what, fix=fix, id="format/unreadable-include"))
        return None
    try:
        return decode_file(path, context.upload.files[path])
    except ScenarioFileError as error:
        problems += error.problems
        return None


def case_files(value: Mapping[str, Json]) -> list[str]:
    """Return the names of files that `tests` and `imports` include, without imported suites."""
    imports = value.get("imports")
    imported = _listed(imports.get("tests")) if isinstance(imports, dict) else []
    paths = [one.get("path", one.get("include")) if isinstance(one, dict) else one for one in imported]
    kept = [path for path in paths if not str(path).lower().endswith(_SUITES)]
    return [one.removeprefix(PREFIX) for one in (*_listed(value.get("tests")), *kept) if isinstance(one, str)]


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def expand_cases(
    values: Sequence[Json], context: EvalFileContext, at: Location, problems: list[Problem]
) -> list[Case]:
    """Return all cases of a list; a text in it is the name of a file with more of them."""
    cases: list[Case] = []
    for index, value in enumerate(values):
        if isinstance(value, str):
            cases += cases_of_file(value, context, (*at, index), problems)
        else:
            cases.append((context, value, (*at, index)))
    return cases


def find_case_files(name: str, context: EvalFileContext) -> list[str]:
    """Return the paths of a file with cases, of those that a glob matches, or of a folder's. Raises `BadGlob`."""
    shown = name.removeprefix(PREFIX)
    if path := context.find_file(shown):
        return [path]
    if _GLOB.search(shown):
        return _matching_files(shown, context)
    folder = context.find_folder(shown)
    return [] if folder is None else _cases_of_folder(folder, context)


def _matching_files(glob: str, context: EvalFileContext) -> list[str]:
    """Return the files that a glob of the eval file's folder matches; hidden ones only if it names them."""
    pattern = inside(context.folder, glob.replace("\\", "/").lstrip("/"))
    fits = matcher(pattern) if pattern else None
    named = set((pattern or "").split("/"))
    return [
        path
        for path in sorted(context.upload.files)
        if fits
        and fits(path)
        and not any(part.startswith(".") and part not in named for part in path.split("/"))
    ]


def _cases_of_folder(folder: str, context: EvalFileContext) -> list[str]:
    """Return the case of each folder in a folder."""
    found: dict[str, str] = {}
    for path in sorted(context.upload.files):
        case, name = posixpath.split(path)
        if name in _CASE_FILES and case != folder and posixpath.dirname(case) == folder:
            found.setdefault(case, path)
    return list(found.values())


def cases_of_file(name: str, context: EvalFileContext, at: Location, problems: list[Problem]) -> list[Case]:
    """Return the cases of a file, folder or glob that stands in the place of a list, or of a case."""
    shown = name.removeprefix(PREFIX)
    try:
        paths = find_case_files(name, context)
    except BadGlob as error:
        problem = context.document.problem(at, str(error), fix="Fix the pattern.", id="format/bad-glob")
        problems.append(problem)
        return []
    is_glob = bool(_GLOB.search(shown))
    is_folder = not is_glob and context.find_folder(shown) is not None
    if not paths:
        problems.append(_no_cases(shown, context, at, is_glob=is_glob, is_folder=is_folder))
    read = _case_of_folder if is_folder else _cases_of_path
    return [case for path in paths for case in read(path, path if is_glob else shown, context, at, problems)]


def _no_cases(
    shown: str, context: EvalFileContext, at: Location, *, is_glob: bool, is_folder: bool
) -> Problem:
    if is_folder:
        what = f"The folder '{shown}' has no cases."
        fix = "Write each as 'case.yaml' in a folder of its own there, or name a file."
    elif is_glob and inside(context.folder, shown.lstrip("/")):
        what = f"No file of the upload matches '{shown}'."
        fix = "Write a path from the eval file's folder: '*' matches in a folder, '**' across folders."
    else:
        return context.missing(at, shown)
    return context.document.problem(at, what, fix=fix, id="format/missing-file")


def _case_of_folder(
    path: str, shown: str, context: EvalFileContext, at: Location, problems: list[Problem]
) -> list[Case]:
    """Return the case of a folder, whose name is the case's id unless it has one."""
    document = _decode(path, shown, context, at, problems)
    if document is None:
        return []
    folder = posixpath.dirname(path)
    value = document.value
    if isinstance(value, dict):
        value = {**value, "id": posixpath.basename(folder)} if value.get("id") is None else value
        if f"{folder}/workspace" in context.upload.folders:
            value = {"workspace": {}, **value}
    return [(replace(context, document=document), value, ())]


def _cases_of_path(
    path: str, shown: str, context: EvalFileContext, at: Location, problems: list[Problem]
) -> list[Case]:
    document = _decode(path, shown, context, at, problems)
    if document is None:
        return []
    key: Location = ()
    values = document.value
    if isinstance(values, dict) and "tests" in values:
        key, values = ("tests",), values["tests"]
    if not isinstance(values, list):
        what = "A file of cases must be a list."
        problems.append(
            document.problem((), what, fix="Write each case after a dash.", id="format/wrong-type")
        )
        return []
    inner = replace(context, document=document)
    return [(inner, value, (*key, index)) for index, value in enumerate(values)]
