"""Read one eval file of AgentV: YAML, or a JSONL dataset with its sidecar."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace

from evaluators.model import Json
from scenarios.formats.agentv import NAME
from scenarios.formats.agentv.eval_cases import EvalCaseReading, SuiteDefaults, read_case
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.agentv.eval_models import EvalFile
from scenarios.formats.agentv.evaluator_reader import EvaluatorReader
from scenarios.formats.agentv.guideline_settings import find_targets, read_patterns
from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.upload import UploadedFiles, is_targets_file
from scenarios.formats.validation import kind, validate
from scenarios.formats.yaml_text import read_yaml
from scenarios.spec import ScenarioSpec

BUNDLE = "files"
"""The name of the fixture with the files of an eval file."""


def read_file(
    document: PositionedDocument, upload: UploadedFiles, evals: frozenset[str], fallback: str
) -> tuple[ParsedSuite | None, list[Problem]]:
    """Return the suite of an eval file and all its problems.

    `evals` are all eval files of the upload; `fallback` is the suite's name if the file has none.
    """
    patterns, base, problems = read_patterns(upload, document.file)
    context = EvalFileContext(document, upload, patterns, base)
    suite, values, at, found = _read_defaults(context)
    problems += found
    if suite is None:
        return None, problems
    readings = [read_case(value, suite, (*at, index)) for index, value in enumerate(values)]
    problems += [problem for reading in readings for problem in reading.problems]
    problems += _repeated_ids(readings, document)
    targets_file, targets_text, found = find_targets(upload, document.file)
    problems += found
    bundle = _bundle(context, evals)
    specs = [reading.spec for reading in readings if reading.spec]
    return ParsedSuite(
        name=suite.found.dataset or fallback,
        format=NAME,
        scenarios=tuple(_with_bundle(spec, bundle) for spec in specs),
        fixtures={BUNDLE: bundle} if bundle else {},
        lints=tuple(sorted({problem for problem in problems if problem.lint})),
        targets_text=targets_text,
        targets_file=targets_file,
        settings={"guideline_patterns": list(patterns)},
    ), problems


def sidecar(file: str) -> str:
    """Return the path of the optional settings file of a JSONL dataset."""
    return posixpath.splitext(file)[0] + ".yaml"


def _read_defaults(
    context: EvalFileContext,
) -> tuple[SuiteDefaults | None, Sequence[Json], Location, list[Problem]]:
    """Return the defaults, the cases, their location and problems."""
    document = context.document
    if isinstance(document.value, list):
        return _read_dataset_defaults(context, document.value)
    value = {key: item for key, item in document.value.items() if item is not None}
    values = value.pop("evalcases", None)
    found, problems = validate(EvalFile, value, document)
    if values is None or values == []:
        what, fix = "The file has no eval cases.", "Add 'evalcases:' with one entry for each case."
        problems.append(document.problem((), what, fix=fix, id="format/missing-field"))
    elif not isinstance(values, list):
        what = f"The eval cases must be a list, not {kind(values)}."
        fix = "Write each case as a list item, after a dash."
        problems.append(document.problem(("evalcases",), what, fix=fix, id="format/wrong-type"))
    # The cases are read anyway, to report all problems at once.
    cases = values if isinstance(values, list) else []
    suite, more = _defaults_with_evaluators(context, found, value, document)
    return suite, cases, ("evalcases",), [*problems, *more]


def _defaults_with_evaluators(
    context: EvalFileContext, found: EvalFile | None, value: Json, document: PositionedDocument
) -> tuple[SuiteDefaults, list[Problem]]:
    """Return the defaults with the evaluators of a document, even an invalid one."""
    execution = value.get("execution") if isinstance(value, dict) else None
    listed = execution.get("evaluators") if isinstance(execution, dict) else None
    reader = EvaluatorReader(replace(context, document=document))
    evaluators = reader.read(listed if isinstance(listed, list) else (), ("execution", "evaluators"))
    return SuiteDefaults(context, found or EvalFile(), evaluators), reader.problems


def _read_dataset_defaults(
    context: EvalFileContext, values: Sequence[Json]
) -> tuple[SuiteDefaults | None, Sequence[Json], Location, list[Problem]]:
    path = sidecar(context.document.file)
    if path not in context.upload.files:
        return SuiteDefaults(context, EvalFile()), values, (), []
    try:
        beside = read_yaml(context.upload.files[path], path)
    except ScenarioFileError as error:
        return None, (), (), list(error.problems)
    found, problems = validate(EvalFile, beside.value, beside)
    suite, more = _defaults_with_evaluators(context, found, beside.value, beside)
    return suite, values, (), [*problems, *more]


def _repeated_ids(readings: Sequence[EvalCaseReading], document: PositionedDocument) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for spec in (reading.spec for reading in readings):
        if spec is None:
            continue
        if spec.key in first:
            problems.append(_duplicate_case(spec, first[spec.key], document))
        first.setdefault(spec.key, spec.line)
    return problems


def _duplicate_case(spec: ScenarioSpec, line: int, document: PositionedDocument) -> Problem:
    return Problem(
        file=document.file,
        line=spec.line,
        where="id",
        what=f"Duplicate case '{spec.key}', first in line {line}.",
        fix="Give each case of a file a unique id.",
        id="format/duplicate-scenario",
    )


def _with_bundle(spec: ScenarioSpec, bundle: Fixture) -> ScenarioSpec:
    return spec.model_copy(update={"bundle": BUNDLE}) if bundle else spec


def _bundle(context: EvalFileContext, evals: frozenset[str]) -> Fixture:
    """Return the files a worker needs: the eval file's folder and everything it references.

    Eval files are excluded because they contain the answers, as are targets, settings and environment files.
    """
    upload = context.upload
    left_out = evals | {sidecar(path) for path in evals if path.endswith(".jsonl")}
    below = (context.folder, *context.used)
    return tuple(
        FixtureFile(path, content, executable=path in upload.executables)
        for path, content in sorted(upload.files.items())
        if path not in left_out and not _is_private(path) and any(_contains(one, path) for one in below)
    )


def _contains(folder: str, path: str) -> bool:
    return not folder or path == folder or path.startswith(folder + "/")


def _is_private(path: str) -> bool:
    *folders, name = path.split("/")
    hidden = {".agentv", ".git", "node_modules"} & set(folders)
    return bool(hidden) or is_targets_file(path) or name == ".agentv.yaml" or name.startswith(".env")
