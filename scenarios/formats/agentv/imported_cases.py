"""Read `imports`, which adds the cases of other files to an eval file's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluators.model import Json
from evaluators.tool_use.guidelines import BadGlob, matcher
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.agentv.import_models import ImportedFile, ImportsFile, SelectFile
from scenarios.formats.agentv.included_files import Case, cases_of_file
from scenarios.formats.agentv.prompt_values import merge_metadata
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem
from scenarios.formats.validation import validate

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
    tags = _as_list(metadata.get("tags"))
    return (
        (not select.test_ids or _matches(case.get("id"), select.test_ids))
        and (not select.tags or any(_matches(tag, select.tags) for tag in tags))
        and all(
            any(each in _as_list(metadata.get(key)) for each in _as_list(wanted))
            for key, wanted in select.metadata.items()
        )
    )


def _matches(text: Json, patterns: Sequence[str]) -> bool:
    return isinstance(text, str) and any(matcher(pattern)(text) for pattern in patterns)


def _as_list(value: Json) -> list[Json]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
