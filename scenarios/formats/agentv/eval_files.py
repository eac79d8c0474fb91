"""Read one eval file of AgentV: YAML, or a JSONL dataset with its sidecar."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from evaluators.grading.scores import BaseEvaluator
from evaluators.model import Json
from scenarios.formats.agentv import NAME
from scenarios.formats.agentv.eval_cases import SuiteDefaults, read_cases
from scenarios.formats.agentv.eval_models import DefaultTest, EvalFile, Execution, TargetFile, TrialsFile
from scenarios.formats.agentv.evaluator_reader import EvaluatorReader
from scenarios.formats.agentv.file_versions import (
    CASES_KEYS,
    OF_LIST,
    EvalFileContext,
    unify_keys,
    version_of_dataset,
    version_of_file,
    without_later_keys,
)
from scenarios.formats.agentv.guideline_settings import find_targets, read_patterns
from scenarios.formats.agentv.imported_cases import (
    Case,
    cases_of_file,
    expand_cases,
    read_case_list,
    read_imports,
)
from scenarios.formats.agentv.prompt_matrix import environment_problems, read_prompts
from scenarios.formats.parsed import (
    CaseReading,
    Fixture,
    FixtureFile,
    Location,
    ParsedSuite,
    PositionedDocument,
    Problem,
    ScenarioFileError,
    describe_kind,
    find_repeated,
    validate,
)
from scenarios.formats.upload import UploadedFiles, is_below, is_targets_file
from scenarios.formats.yaml_text import read_yaml

BUNDLE = "files"
"""The name of the fixture with the files of an eval file."""


def read_eval_file(
    document: PositionedDocument, upload: UploadedFiles, evals: frozenset[str], fallback: str
) -> tuple[ParsedSuite | None, list[Problem]]:
    """Return the suite of an eval file and all its problems.

    `evals` are all eval files of the upload; `fallback` is the suite's name if the file has none.
    """
    patterns, base, problems = read_patterns(upload, document.file)
    is_dataset = isinstance(document.value, list)
    version = version_of_dataset(document.value) if is_dataset else version_of_file(document.value)
    context = EvalFileContext(document, upload, patterns, base, version=version)
    suite, cases, more = _read_defaults(context)
    problems += more
    if suite is None:
        return None, problems
    readings = [
        reading
        for case_context, value, at in cases
        for reading in read_cases(value, replace(suite, context=case_context), at)
    ]
    problems += [problem for reading in readings for problem in reading.problems]
    problems += _repeated_ids(readings)
    targets_file, targets_text, more = find_targets(upload, document.file)
    problems += more
    bundle = _bundle(context, evals)
    specs = [reading.spec for reading in readings if reading.spec]
    return ParsedSuite(
        name=suite.found.dataset
        or suite.found.name
        or suite.found.suite
        or (fallback.removesuffix(".eval") if version.is_later else fallback),
        format=NAME,
        scenarios=tuple(spec.model_copy(update={"bundle": BUNDLE}) if bundle else spec for spec in specs),
        fixtures={BUNDLE: bundle} if bundle else {},
        lints=tuple(sorted({problem for problem in problems if problem.lint})),
        targets_text=targets_text,
        targets_file=targets_file,
        settings={"guideline_patterns": list(patterns)} | _trials_setting(suite.found),
    ), problems


def find_sidecar(file: str) -> str:
    """Return the path of the optional settings file of a JSONL dataset."""
    return posixpath.splitext(file)[0] + ".yaml"


def _find_trials(eval_file: EvalFile) -> tuple[TrialsFile | None, Location]:
    """Return how often the file asks to run each case, if it does, and where."""
    if (options := eval_file.evaluate_options) and options.repeat:
        return options.repeat, ("evaluate_options", "repeat")
    if eval_file.repeat:
        return eval_file.repeat, ("repeat",)
    return eval_file.execution.trials if eval_file.execution else None, ("execution", "trials")


def _trials_setting(eval_file: EvalFile) -> dict[str, Json]:
    trials, _ = _find_trials(eval_file)
    return {"trials": trials.count} if trials and trials.count > 1 else {}


def _trials_lint(eval_file: EvalFile, document: PositionedDocument) -> Iterator[Problem]:
    if trials := _trials_setting(eval_file).get("trials"):
        _, at = _find_trials(eval_file)
        what = f"The file runs each case {trials} times."
        fix = f"Start runs with {trials} trials each; the form of a new run proposes them."
        yield document.problem(at, what, fix=fix, id="format/trials", lint=True)


def _read_defaults(
    context: EvalFileContext,
) -> tuple[SuiteDefaults | None, Sequence[Case], list[Problem]]:
    """Return the defaults, the cases and problems."""
    document = context.document
    if isinstance(document.value, list):
        suite, problems = _read_dataset_defaults(context)
        return suite, [(context, value, (index,)) for index, value in enumerate(document.value)], problems
    value = {key: item for key, item in document.value.items() if item is not None}
    problems = list(_repeated_case_keys(value, document))
    key = context.version.cases
    values = value.pop(key, None)
    imports = value.pop("imports", None) if context.version.is_later else None
    cases: list[Case] = []
    wrong: list[Problem] = []
    if imports is not None:
        cases += read_imports(imports, context, value.get("metadata"), wrong)
    if values is not None and values != []:
        cases += _own_cases(values, context, key, wrong)
    elif not cases and not wrong:
        what, fix = "The file has no eval cases.", f"Add '{key}:' with one entry for each case."
        wrong.append(document.problem((), what, fix=fix, id="format/missing-field"))
    # The cases are read anyway, to report all problems at once.
    suite, more = _read_settings(context, value, document)
    return suite, cases, [*problems, *wrong, *more]


def _own_cases(values: Json, context: EvalFileContext, key: str, problems: list[Problem]) -> Sequence[Case]:
    """Return the cases of a file's list, or of the file that it names instead."""
    if isinstance(values, str) and context.version.is_later:
        return cases_of_file(values, context, (key,), problems)
    if not isinstance(values, list):
        what = f"The eval cases must be a list, not {describe_kind(values)}."
        fix = "Write each case as a list item, after a dash."
        problems.append(context.document.problem((key,), what, fix=fix, id="format/wrong-type"))
        return []
    if context.version.is_later:
        return expand_cases(values, context, (key,), problems)
    return [(context, each, (key, index)) for index, each in enumerate(values)]


def _repeated_case_keys(value: Mapping[str, Json], document: PositionedDocument) -> Iterator[Problem]:
    used = [key for key in CASES_KEYS if key in value]
    for key in used[1:]:
        what = f"'{used[0]}' and '{key}' are the same key in different versions of AgentV."
        yield document.problem((key,), what, fix="Keep one of them.", id="format/repeated-key")


def _read_settings(
    context: EvalFileContext, value: Mapping[str, Json], document: PositionedDocument
) -> tuple[SuiteDefaults, list[Problem]]:
    """Return the defaults of a document, even of an invalid one, with their evaluators."""
    context = replace(context, document=document)
    known, lints = without_later_keys(value, context.version, document, ())
    fields, spelled, problems = unify_keys(known, OF_LIST, document, ())
    problems += lints
    shared = fields.pop("default_test", None)
    of_execution: Json = None
    if isinstance(execution := fields.get("execution"), dict):
        fields["execution"], _, more = unify_keys(execution, OF_LIST, document, ("execution",))
        of_execution = fields["execution"].get("evaluators")
        problems += more
    if context.version.is_later:
        problems += environment_problems(fields, context, ())
    lists: list[tuple[Json, Location, PositionedDocument]] = [
        (fields.get("evaluators"), (spelled.get("evaluators", "evaluators"),), document),
        (of_execution, ("execution", "evaluators"), document),
    ]
    settings, more = validate(EvalFile, fields, document, spelled=spelled)
    problems += more
    settings = settings or EvalFile()
    if shared is not None:
        default, listed = _read_default_test(shared, context, problems)
        settings = settings.model_copy(update={"default_test": default})
        lists.append(listed)
    evaluators: list[BaseEvaluator] = []
    for items, at, of in lists:
        reader = EvaluatorReader(replace(context, document=of), problems)
        texts = context.version.is_later or at[-1] != "evaluators"
        evaluators += reader.read(items, at, texts_are_statements=texts) if isinstance(items, list) else ()
    listed_prompts = fields.get("prompts")
    prompts = read_prompts(listed_prompts if isinstance(listed_prompts, list) else (), context, problems)
    problems += _trials_lint(settings, document)
    return SuiteDefaults(
        context, settings, tuple(evaluators), tuple(prompts), tuple(_targets(settings)), document
    ), problems


def _read_default_test(
    value: Json, context: EvalFileContext, problems: list[Problem]
) -> tuple[DefaultTest, tuple[Json, Location, PositionedDocument]]:
    """Return `default_test`, here or in the file that it names, and its assertions with their place."""
    document = context.document
    at: Location = ("default_test",)
    if isinstance(value, str):
        named = read_case_list(value, context, at, problems)
        document, at, value = (named, (), named.value) if named else (document, at, {})
    if not isinstance(value, dict):
        what = f"'default_test' must be a mapping, not {describe_kind(value)}."
        problems.append(
            document.problem(at, what, fix="Write 'vars:' and 'assert:' in it.", id="format/wrong-type")
        )
        value = {}
    fields, spelled, more = unify_keys(value, OF_LIST, document, at)
    problems += more
    default, more = validate(DefaultTest, fields, document, at, spelled=spelled)
    problems += more
    key = spelled.get("evaluators", "evaluators")
    return default or DefaultTest(), (fields.get("evaluators"), (*at, key), document)


def _targets(eval_file: EvalFile) -> Iterator[TargetFile]:
    """Return the file's targets, each once."""
    execution = eval_file.execution or Execution()
    listed = eval_file.providers or eval_file.targets or execution.targets
    if listed:
        first: dict[str, TargetFile] = {}
        for one in listed:
            first.setdefault(one.target, one)
        yield from (one for name, one in first.items() if name)
    elif name := execution.target or eval_file.target:
        yield TargetFile(name=name)


def _read_dataset_defaults(context: EvalFileContext) -> tuple[SuiteDefaults | None, list[Problem]]:
    path = find_sidecar(context.document.file)
    if path not in context.upload.files:
        return SuiteDefaults(context, EvalFile()), []
    try:
        beside = read_yaml(context.upload.files[path], path)
    except ScenarioFileError as error:
        return None, list(error.problems)
    value = beside.value if isinstance(beside.value, dict) else {}
    suite, problems = _read_settings(context, value, beside)
    return replace(suite, context=context), problems


def _repeated_ids(readings: Sequence[CaseReading]) -> list[Problem]:
    specs = ((reading.spec.key, reading.spec) for reading in readings if reading.spec)
    return [
        Problem(
            file=spec.file,
            line=spec.line,
            where="id",
            what=f"Duplicate case '{key}', first in line {first.line}.",
            fix="Give each case of a file a unique id.",
            id="format/duplicate-scenario",
        )
        for key, spec, first in find_repeated(specs)
    ]


def _bundle(context: EvalFileContext, evals: frozenset[str]) -> Fixture:
    """Return the files a worker needs: the eval file's folder and everything it references.

    Eval files are excluded because they contain the answers, as are targets, settings and environment files.
    """
    upload = context.upload
    left_out = evals | {find_sidecar(path) for path in evals if path.endswith(".jsonl")} | context.answers
    below = (context.folder, *context.used)
    return tuple(
        FixtureFile(path, content, executable=path in upload.executables)
        for path, content in sorted(upload.files.items())
        if path not in left_out and not _is_private(path) and any(is_below(folder, path) for folder in below)
    )


def _is_private(path: str) -> bool:
    *folders, name = path.split("/")
    hidden = {".agentv", ".git", "node_modules"} & set(folders)
    return bool(hidden) or is_targets_file(path) or name == ".agentv.yaml" or name.startswith(".env")
