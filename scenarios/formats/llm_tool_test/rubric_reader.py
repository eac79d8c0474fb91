"""Read `evaluation.judge` and its rubric."""

from __future__ import annotations

import math
from dataclasses import replace

from evaluators.grading.judges.rubric import PREFIX, READY, JudgeCriteria, RubricCriteria
from evaluators.model import Json
from scenarios.formats.llm_tool_test.fixture_paths import find_file
from scenarios.formats.llm_tool_test.scenario_models import Judge, RubricFile
from scenarios.formats.parsed import find_repeated
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.upload import UploadedFiles
from scenarios.formats.validation import kind, validate
from scenarios.formats.yaml_text import read_yaml

AT: Location = ("evaluation", "judge")


def read_judge(
    judge: Judge, document: PositionedDocument, upload: UploadedFiles, fixture_folders: tuple[str, ...]
) -> tuple[JudgeCriteria | None, list[Problem]]:
    """Return the judge's criteria and all problems; for a disabled judge they are lints."""
    rubric, problems = _read_rubric(judge.rubric, document, upload, fixture_folders)
    if judge.pass_threshold is None:
        problems.append(_missing(document, "pass_threshold", "a number from 0 to 1"))
    if not judge.enabled:
        problems = [replace(problem, lint=True) for problem in problems]
    if rubric is None or judge.pass_threshold is None:
        return None, problems
    fields = judge.model_dump(exclude={"rubric"})
    return JudgeCriteria(rubric=rubric, **fields), problems


def _read_rubric(
    value: Json, document: PositionedDocument, upload: UploadedFiles, fixture_folders: tuple[str, ...]
) -> tuple[RubricCriteria | None, list[Problem]]:
    at = (*AT, "rubric")
    if isinstance(value, dict):
        return _rubric(value, document, at, name="")
    if value is None:
        return None, [_missing(document, "rubric", "the path of a rubric, or an inline rubric")]
    if not isinstance(value, str):
        what = f"A rubric must be a path or a mapping, not {kind(value)}."
        return None, [document.problem(at, what, fix="Write the rubric's path.", id="format/wrong-type")]
    if value.startswith(PREFIX) and (ready := READY.get(value.removeprefix(PREFIX))):
        return ready, []
    path = find_file(upload, document.file, value, fixture_folders)
    if path is None:
        return None, [
            document.problem(
                at,
                f"The file '{value}' is not in the upload.",
                fix="Upload the folder with the scenario and its rubric, or write the rubric inline.",
                id="format/missing-rubric",
            )
        ]
    try:
        rubric_document = read_yaml(upload.files[path], path)
    except ScenarioFileError as error:
        return None, list(error.problems)
    return _rubric(rubric_document.value, rubric_document, (), name=path)


def _missing(document: PositionedDocument, key: str, value: str) -> Problem:
    return document.problem(
        AT, f"The judge has no '{key}'.", fix=f"Add '{key}:' with {value}.", id="format/missing-field"
    )


def _rubric(
    value: Json, document: PositionedDocument, at: Location, *, name: str
) -> tuple[RubricCriteria | None, list[Problem]]:
    rubric_file, problems = validate(RubricFile, value, document, at)
    if rubric_file is None:
        return None, problems
    problems += _find_repeated(rubric_file, document, at) + _find_unbalanced(rubric_file, document, at)
    fields = tuple(rubric_file.output.require_fields)
    return RubricCriteria(
        name=rubric_file.name or name, criteria=rubric_file.criteria, require_fields=fields
    ), problems


def _find_repeated(rubric_file: RubricFile, document: PositionedDocument, at: Location) -> list[Problem]:
    ids = ((entry.id, index) for index, entry in enumerate(rubric_file.criteria))
    return [
        document.problem(
            (*at, "criteria", index, "id"),
            f"Duplicate criterion '{id}' in the rubric.",
            fix="Give each criterion a unique id.",
            id="format/duplicate-criterion",
        )
        for id, index, _ in find_repeated(ids)
    ]


def _find_unbalanced(rubric_file: RubricFile, document: PositionedDocument, at: Location) -> list[Problem]:
    total = math.fsum(entry.weight for entry in rubric_file.criteria)
    if total == 0:
        what, fix = "All criteria have weight 0.", "Give at least one criterion a weight."
        return [document.problem((*at, "criteria"), what, fix=fix, id="format/no-weight")]
    if abs(total - 1) <= 1e-6:
        return []
    what = f"The rubric's weights add up to {total:g}, not 1."
    fix = "They are scaled to 1. Write weights that add up to 1."
    return [document.problem((*at, "criteria"), what, fix=fix, id="format/rubric-weights", lint=True)]
