"""Read files that an eval file includes: cases, assertions, prompts and shared defaults."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluators.model import Json
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.candidates import READERS, decode_file
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem, ScenarioFileError

PREFIX = "file://"
_TEMPLATES = ".agentv/templates"
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


def cases_of_file(name: str, context: EvalFileContext, at: Location, problems: list[Problem]) -> list[Case]:
    """Return the cases of a file that stands in the place of a list, or of a case."""
    document = read_named(name, context, at, problems)
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
