"""Read what an AgentV file includes: `imports` of cases, and files of cases, assertions, prompts and shared defaults."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BeforeValidator, Field

from evaluators.grading.judges.llm_judge import OF_FILE, LlmJudge, find_placeholders
from evaluators.grading.scores import BaseEvaluator
from evaluators.grading.scores.composite_evaluator import CompositeEvaluator
from evaluators.model import Json, Text
from evaluators.tool_use.guidelines import BadGlob, matcher
from scenarios.formats.agentv.file_versions import EvalFileContext
from scenarios.formats.parsed import (
    Location,
    Mirror,
    PositionedDocument,
    Problem,
    ScenarioFileError,
    validate,
)
from scenarios.formats.upload import READERS, decode_file, resolve_inside


def merge_metadata(shared: Json, own: Json) -> Mapping[str, Json]:
    """Return a case's metadata with its file's: lists are joined, else the case's value has priority."""
    merged = dict(shared) if isinstance(shared, dict) else {}
    for key, value in own.items() if isinstance(own, dict) else ():
        is_joined = isinstance(value, list) and isinstance(merged.get(key), list)
        merged[key] = [*merged[key], *value] if is_joined else value
    return merged


def find_prompt_values(
    evaluators: Iterable[BaseEvaluator], metadata: Mapping[str, Json], rubrics: Json
) -> dict[str, str]:
    """Return the values of the placeholders that judges' prompts use; others aren't part of the case."""
    used: set[str] = set().union(*map(find_placeholders, _prompts(evaluators)))
    known: dict[str, str] = {}
    for name, value in (("metadata", dict(metadata)), ("rubrics", rubrics)):
        if value:
            known[name] = json.dumps(value, indent=2, ensure_ascii=False)
            known[f"{name}_json"] = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return {name: text for name, text in known.items() if name in used}


def find_unfilled(template: str, rubrics: Json, context: EvalFileContext, at: Location) -> list[Problem]:
    """Return a lint for each placeholder of a template that stays empty."""
    missing = {"file_changes"} if rubrics else {"file_changes", "rubrics", "rubrics_json"}
    used = find_placeholders(template)
    return [
        context.document.problem(
            at,
            f"evalhub has no value for {{{{{name}}}}}, so it is empty in the judge's prompt.",
            fix="Remove it, or write its text into the prompt.",
            id="format/empty-placeholder",
            lint=True,
        )
        for name in OF_FILE
        if name in missing & used
    ]


def _prompts(evaluators: Iterable[BaseEvaluator]) -> Iterator[str]:
    for one in evaluators:
        if isinstance(one, LlmJudge):
            yield one.prompt
        elif isinstance(one, CompositeEvaluator):
            yield from _prompts(one.evaluators)


def _as_list(value: Json) -> Json:
    """Return a single value as a list."""
    return [value] if isinstance(value, str | dict) else value


def _select(value: Json) -> Json:
    """Read a glob, or a list of them, as patterns of ids."""
    return {"test_ids": value} if isinstance(value, str | list) else value


def _imported(value: Json) -> Json:
    return {"path": value} if isinstance(value, str) else value


Globs = Annotated[list[Text], BeforeValidator(_as_list, json_schema_input_type=Text | list[Text])]


class SelectFile(Mirror):
    """Which cases of a file are imported."""

    test_ids: Globs = Field(default_factory=list, validation_alias=AliasChoices("test_ids", "testIds"))
    tags: Globs = Field(default_factory=list)
    metadata: dict[str, Any] = Field(default_factory=dict)


class ImportedFile(Mirror):
    """One entry of `imports.tests`."""

    unrunnable: ClassVar[Mapping[str, str]] = {"run": "Write 'threshold:' in its cases."}

    path: Text = Field(validation_alias=AliasChoices("path", "include"))
    select: (
        Annotated[SelectFile, BeforeValidator(_select, json_schema_input_type=Text | list[Text] | SelectFile)]
        | None
    ) = None


Imported = Annotated[ImportedFile, BeforeValidator(_imported, json_schema_input_type=Text | ImportedFile)]


class ImportsFile(Mirror):
    """`imports`: files whose cases are added."""

    unrunnable: ClassVar[Mapping[str, str]] = {
        "suites": "Remove it, and upload the files with this one: each is a suite of its own."
    }

    tests: Annotated[
        list[Imported], BeforeValidator(_as_list, json_schema_input_type=Text | ImportedFile | list[Imported])
    ] = Field(default_factory=list)


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


def read_case_list(
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
    pattern = resolve_inside(context.folder, glob.replace("\\", "/").lstrip("/"))
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
    """Return the cases of a file, folder or glob that replaces a list or a case."""
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
    elif is_glob and resolve_inside(context.folder, shown.lstrip("/")):
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


AT: Location = ("imports",)


def read_imports(
    value: Json, context: EvalFileContext, shared: Json, problems: list[Problem]
) -> Iterator[Case]:
    """Yield the cases of imported files. `shared` is the importing file's `metadata`, which `select` looks at, too."""
    imports, more = validate(ImportsFile, value, context.document, AT)
    problems += more
    listed = imports.tests if imports else []
    is_list = isinstance(value, dict) and isinstance(value.get("tests"), list)
    for index, entry in enumerate(listed):
        at: Location = (*AT, "tests", index) if is_list else (*AT, "tests")
        if _are_globs(entry, context, at, problems):
            for case in cases_of_file(entry.path, context, (*at, "path"), problems):
                if entry.select is None or _is_selected(case[1], entry.select, shared):
                    yield case


def _are_globs(entry: ImportedFile, context: EvalFileContext, at: Location, problems: list[Problem]) -> bool:
    """Return whether the patterns of a selection are globs; else a problem is added."""
    select = entry.select or SelectFile()
    try:
        for pattern in (*select.test_ids, *select.tags):
            matcher(pattern)
    except BadGlob as error:
        problem = context.document.problem(
            (*at, "select"), str(error), fix="Fix the pattern.", id="format/bad-glob"
        )
        problems.append(problem)
        return False
    return True


def _is_selected(case: Json, select: SelectFile, shared: Json) -> bool:
    """Return whether a selection takes a case, by its id, its tags and its metadata."""
    if not isinstance(case, dict):
        return True
    metadata = merge_metadata(shared, case.get("metadata"))
    tags = _imported_case_as_list(metadata.get("tags"))
    return (
        (not select.test_ids or _matches(case.get("id"), select.test_ids))
        and (not select.tags or any(_matches(tag, select.tags) for tag in tags))
        and all(
            any(each in _imported_case_as_list(metadata.get(key)) for each in _imported_case_as_list(wanted))
            for key, wanted in select.metadata.items()
        )
    )


def _matches(text: Json, patterns: Sequence[str]) -> bool:
    return isinstance(text, str) and any(matcher(pattern)(text) for pattern in patterns)


def _imported_case_as_list(value: Json) -> list[Json]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
