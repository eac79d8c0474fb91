"""One eval file of AgentV: YAML, or a JSONL dataset with its sidecar."""

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
from scenarios.formats.positions import Document, Location
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.upload import UploadedFiles, is_targets_file
from scenarios.formats.validation import kind, validate
from scenarios.formats.yaml_text import read_yaml
from scenarios.spec import ScenarioSpec

BUNDLE = "files"
"""Name of the fixture that holds what came with an eval file."""


def read_file(
    document: Document, upload: UploadedFiles, evals: frozenset[str], fallback: str
) -> tuple[ParsedSuite | None, list[Problem]]:
    """Return the suite of an eval file and everything that is wrong with it.

    `evals` are all eval files of the upload, `fallback` is the suite's name where the file gives none.
    """
    patterns, base, problems = read_patterns(upload, document.file)
    context = EvalFileContext(document, upload, patterns, base)
    suite, values, at, found = _parts(context)
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
    """Return the path of the settings that may lie beside a JSONL dataset."""
    return posixpath.splitext(file)[0] + ".yaml"


def _parts(context: EvalFileContext) -> tuple[SuiteDefaults | None, Sequence[Json], Location, list[Problem]]:
    """Return what holds for all cases, the cases, and where they stand."""
    document = context.document
    if isinstance(document.value, list):
        return _of_dataset(context, document.value)
    value = {key: item for key, item in document.value.items() if item is not None}
    values = value.pop("evalcases", None)
    found, problems = validate(EvalFile, value, document)
    if values is None or values == []:
        what, fix = "The file has no eval cases.", "Add 'evalcases:' and under it one entry for each case."
        problems.append(document.problem((), what, fix=fix, id="format/missing-field"))
    elif not isinstance(values, list):
        what = f"The eval cases must be a list, not {kind(values)}."
        fix = "Write one case per entry, each after a dash."
        problems.append(document.problem(("evalcases",), what, fix=fix, id="format/wrong-type"))
    # Its cases are read all the same, so that all problems are told at once.
    cases = values if isinstance(values, list) else []
    suite, more = _suite(context, found, value, document)
    return suite, cases, ("evalcases",), [*problems, *more]


def _suite(
    context: EvalFileContext, found: EvalFile | None, value: Json, document: Document
) -> tuple[SuiteDefaults, list[Problem]]:
    """Return what holds for all cases, with the evaluators that stand in a document, also a broken one."""
    execution = value.get("execution") if isinstance(value, dict) else None
    listed = execution.get("evaluators") if isinstance(execution, dict) else None
    reader = EvaluatorReader(replace(context, document=document))
    evaluators = reader.read(listed if isinstance(listed, list) else (), ("execution", "evaluators"))
    return SuiteDefaults(context, found or EvalFile(), evaluators), reader.problems


def _of_dataset(
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
    suite, more = _suite(context, found, beside.value, beside)
    return suite, values, (), [*problems, *more]


def _repeated_ids(readings: Sequence[EvalCaseReading], document: Document) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for spec in (reading.spec for reading in readings):
        if spec is None:
            continue
        if spec.key in first:
            problems.append(_twice(spec, first[spec.key], document))
        first.setdefault(spec.key, spec.line)
    return problems


def _twice(spec: ScenarioSpec, line: int, document: Document) -> Problem:
    return Problem(
        file=document.file,
        line=spec.line,
        where="id",
        what=f"The case '{spec.key}' stands in line {line} as well.",
        fix="Give each case of a file an id of its own.",
        id="format/duplicate-scenario",
    )


def _with_bundle(spec: ScenarioSpec, bundle: Fixture) -> ScenarioSpec:
    return spec.model_copy(update={"bundle": BUNDLE}) if bundle else spec


def _bundle(context: EvalFileContext, evals: frozenset[str]) -> Fixture:
    """Return what a worker needs beside the messages: the eval file's folder and what the file refers to.

    Eval files stay out, as they hold the answers, and so do targets, settings and files of variables.
    """
    upload = context.upload
    left_out = evals | {sidecar(path) for path in evals if path.endswith(".jsonl")}
    below = (context.folder, *context.used)
    return tuple(
        FixtureFile(path, content, executable=path in upload.executables)
        for path, content in sorted(upload.files.items())
        if path not in left_out and not _is_private(path) and any(_holds(one, path) for one in below)
    )


def _holds(folder: str, path: str) -> bool:
    return not folder or path == folder or path.startswith(folder + "/")


def _is_private(path: str) -> bool:
    *folders, name = path.split("/")
    hidden = {".agentv", ".git", "node_modules"} & set(folders)
    return bool(hidden) or is_targets_file(path) or name == ".agentv.yaml" or name.startswith(".env")
