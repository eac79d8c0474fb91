"""Translate a scenario file of llm-tool-test with its fixture, its judge and its rubric, and lint its files."""

from __future__ import annotations

import math
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from evaluators.grading.evaluate import Criteria
from evaluators.grading.gates import Gate
from evaluators.grading.gates.file_gates import ProtectedUnchanged
from evaluators.grading.gates.informing_scripts import EvaluatorScript
from evaluators.grading.judges.rubric import PREFIX, READY, JudgeCriteria, RubricCriteria
from evaluators.model import Json
from evaluators.name_lists import list_names
from scenarios.formats.llm_tool_test.config_file import pattern_problems, read_gates, read_tool
from scenarios.formats.llm_tool_test.scenario_models import (
    Judge,
    RubricFile,
    ScenarioFile,
    SettingsFile,
    lints,
)
from scenarios.formats.parsed import (
    CaseReading,
    Fixture,
    Location,
    PositionedDocument,
    Problem,
    ScenarioFileError,
    describe_kind,
    find_repeated,
    validate,
    without_wrong_parts,
)
from scenarios.formats.upload import UploadedFiles, resolve_inside
from scenarios.formats.yaml_text import read_yaml
from scenarios.guidance import is_tool_file
from scenarios.named_files import find_named, is_hidden
from scenarios.spec import MatrixEntry, PostScript, ScenarioSpec, TrialLimits
from scenarios.watched_files import WatchedNames


def is_outside(value: str) -> bool:
    """Return whether a path is absolute or contains `..`, which fixtures must not."""
    return resolve_inside("", value) is None or ".." in value.split("/")


def list_candidates(value: str, fixture_folders: tuple[str, ...]) -> list[str]:
    """Return the possible paths of a template folder; the first existing one is used."""
    named = [posixpath.join(folder, "templates", value) for folder in fixture_folders]
    return [*named, posixpath.join("templates", value), value]


def find_folder(upload: UploadedFiles, file: str, value: str, fixture_folders: tuple[str, ...]) -> str | None:
    """Return a fixture's folder, searched from the scenario's folder, then from the root."""
    for path in _from_both_bases(file, list_candidates(value, fixture_folders)):
        if path in upload.folders or (path == "." and upload.files):
            return path
    return None


def find_file(upload: UploadedFiles, file: str, value: str, fixture_folders: tuple[str, ...]) -> str | None:
    """Return a file's path, searched from the scenario's folder, then from the root."""
    named = [value, *(posixpath.join(folder, value) for folder in fixture_folders)]
    for path in _from_both_bases(file, named):
        if path in upload.files:
            return path
    return None


def contains_file(folder: str, path: str) -> bool:
    """Return whether a fixture's folder contains a file.

    Subfolders called `scenarios` do not count, because llm-tool-test does not copy them.
    """
    below = path if folder == "." else path.removeprefix(folder + "/")
    return (folder == "." or below != path) and "scenarios" not in below.split("/")[:-1]


def _from_both_bases(file: str, values: list[str]) -> Iterator[str]:
    for base in dict.fromkeys((posixpath.dirname(file), "")):
        for value in values:
            if (path := resolve_inside(base, value)) is not None:
                yield path


_MOST_OF_FOLDER = 2
"""Files of a folder that are named one by one."""


def unprotected_lints(spec: ScenarioSpec, fixture: Fixture, document: PositionedDocument) -> list[Problem]:
    """Return the lint of a scenario that doesn't say whether the files that its gates run are the task."""
    if spec.criteria.protected is not None:
        return []
    patterns = suggest_protected(spec, fixture)
    if not patterns:
        return []
    return [
        document.problem(
            ("evaluation", "gates"),
            f"Gates run or name files that the agent can change: {', '.join(patterns)}.",
            fix=f"Add `protected: [{', '.join(map(_quote, patterns))}]`, or `protected: []` if they are the task.",
            id="format/unprotected",
            lint=True,
        )
    ]


def lint_hidden_files(spec: ScenarioSpec, fixture: Fixture, document: PositionedDocument) -> list[Problem]:
    """Return a lint for each setup command that names hidden files, which therefore stay during the setup."""
    paths = [file.path for file in fixture if is_hidden(file.path, spec.hidden)]
    return [
        document.problem(
            ("setup", "commands", index),
            f"The setup names {list_names(sorted(named), 5)}, so hidden files are there during the setup: "
            "the agent can read what it commits or copies.",
            fix="Hidden files that no setup command names are laid after the agent.",
            id="format/hidden-in-setup",
            lint=True,
        )
        for index, command in enumerate(spec.setup)
        if (named := find_named(paths, [command]))
    ]


def suggest_protected(spec: ScenarioSpec, fixture: Fixture) -> list[str]:
    """Return patterns for the fixture's files that scripts and gates run or name, without the tool's own files."""
    texts = {file.path: file.content for file in fixture}
    names = WatchedNames(spec.commands_after_agent, spec.criteria.tool, lambda path: texts.get(path, b""))
    watched = names.find_watched({file.path: file.executable for file in fixture}, texts.__getitem__)
    paths = [path for path in sorted(watched) if not is_tool_file(path, spec.criteria.tool)]
    return list(_as_patterns(paths))


def _as_patterns(paths: list[str]) -> Iterable[str]:
    """Return paths, those of a folder with many as one pattern."""
    folders = Counter(path.split("/")[0] for path in paths if "/" in path)
    patterns = (
        f"{folder}/**" if folders[folder := path.split("/")[0]] > _MOST_OF_FOLDER else path for path in paths
    )
    return dict.fromkeys(patterns)


def _quote(pattern: str) -> str:
    return f"'{pattern}'" if "*" in pattern else pattern


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
        what = f"A rubric must be a path or a mapping, not {describe_kind(value)}."
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


FROM_CONFIG = "from_config"
"""The `target` of a scenario whose tool is that of the settings."""
_STAND_INS: dict[Location, Json] = {
    ("name",): "?",
    ("task",): "?",
    ("evaluation", "judge", "pass_threshold"): 1.0,
}
"""Replacements for invalid parts, needed to check the others; they never reach a result."""


@dataclass
class ReadScenario(CaseReading):
    """One translated file."""

    document: PositionedDocument = field(kw_only=True)
    fixture_folder: str | None = None
    """The fixture's folder in the upload."""
    template: str = ""
    """The fixture's name in the file."""


def read_scenario(
    document: PositionedDocument, upload: UploadedFiles, settings: SettingsFile
) -> ReadScenario:
    """Translate one document, with all its problems."""
    value, from_config = _plain(document.value)
    scenario_file, problems = validate(ScenarioFile, value, document)
    reading = ReadScenario(document=document, problems=problems)
    # The valid parts of a broken file are read too, to report all problems at once.
    rest = scenario_file or without_wrong_parts(ScenarioFile, value, _STAND_INS)
    if rest is None:
        return reading
    _find_fixture(reading, rest, upload, settings)
    criteria = _criteria(reading, rest, upload, settings, from_config=from_config)
    if scenario_file is not None:
        reading.problems += lints(scenario_file, criteria, document)
        reading.spec = _spec(scenario_file, criteria, document, settings)
        fixture = upload.below(reading.fixture_folder) if reading.fixture_folder is not None else ()
        reading.problems += unprotected_lints(reading.spec, fixture, document)
        reading.problems += lint_hidden_files(reading.spec, fixture, document)
    return reading


def _plain(value: Json) -> tuple[Json, bool]:
    """Return a document without empty keys, and whether its tool comes from the settings."""
    value = _without_empty(value)
    if value.get("target") != FROM_CONFIG:
        return value, False
    return {key: item for key, item in value.items() if key != "target"}, True


def _without_empty(value: Json) -> Json:
    """Remove keys without a value, such as `tags:`."""
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def _find_fixture(
    reading: ReadScenario, scenario_file: ScenarioFile, upload: UploadedFiles, settings: SettingsFile
) -> None:
    name = scenario_file.template_folder.rstrip("/")
    if not name.strip():
        return
    if is_outside(name):
        reading.problems.append(
            reading.document.problem(
                ("template_folder",),
                f"'{name}' is outside the upload.",
                fix="Name a folder in the upload, without a leading slash or '..'.",
                id="format/fixture-outside",
            )
        )
        return
    folder = find_folder(upload, reading.document.file, name, settings.fixture_folders)
    if folder is None:
        reading.problems.append(
            reading.document.problem(
                ("template_folder",),
                f"The upload has no folder '{name}' with files.",
                fix=f"Upload the folder with the scenario and templates/{name}, or remove the key to start empty.",
                id="format/missing-fixture",
            )
        )
    elif contains_file(folder, reading.document.file):
        reading.problems.append(
            reading.document.problem(
                ("template_folder",),
                f"The folder '{name}' contains the scenario file, so the agent could read its gates.",
                fix="Move the fixture into its own folder.",
                id="format/fixture-holds-scenario",
            )
        )
    else:
        reading.fixture_folder, reading.template = folder, name


def _criteria(
    reading: ReadScenario,
    scenario_file: ScenarioFile,
    upload: UploadedFiles,
    settings: SettingsFile,
    *,
    from_config: bool,
) -> Criteria:
    tool, problems = read_tool(
        scenario_file.target, reading.document, upload, settings, from_config=from_config
    )
    reading.problems += problems
    for name in ("protected", "hidden"):
        reading.problems += pattern_problems(getattr(scenario_file, name) or (), reading.document, (name,))
    chosen = scenario_file.protected_changed or settings.protected_changed
    return Criteria(
        tool=tool,
        gates=(
            *_gates(reading, scenario_file, tool.binary if tool else ""),
            *((ProtectedUnchanged(),) if chosen == "fail" else ()),
        ),
        scripts=tuple(EvaluatorScript(**dict(script)) for script in scenario_file.scripts.evaluators),
        judge=_judge(reading, scenario_file, upload, settings),
        composite=scenario_file.evaluation.composite,
        protected=settings.protected if scenario_file.protected is None else tuple(scenario_file.protected),
        git_config=scenario_file.git_config or settings.git_config,
    )


def _gates(reading: ReadScenario, scenario_file: ScenarioFile, binary: str) -> tuple[Gate, ...]:
    inner, outer = scenario_file.evaluation.gates, scenario_file.gates
    if inner is not None and outer is not None:
        what = "Gates are in both 'gates' and 'evaluation.gates'."
        fix = "Keep only 'evaluation.gates'."
        reading.problems.append(reading.document.problem(("gates",), what, fix=fix, id="format/gates-twice"))
    at = ("evaluation", "gates") if inner is not None else ("gates",)
    gates, problems = read_gates(
        inner if inner is not None else outer or [], reading.document, at, binary=binary
    )
    reading.problems += problems
    return gates


def _judge(
    reading: ReadScenario, scenario_file: ScenarioFile, upload: UploadedFiles, settings: SettingsFile
) -> JudgeCriteria | None:
    if scenario_file.evaluation.judge is None:
        return None
    judge, problems = read_judge(
        scenario_file.evaluation.judge, reading.document, upload, settings.fixture_folders
    )
    reading.problems += problems
    return judge


def _spec(
    scenario_file: ScenarioFile, criteria: Criteria, document: PositionedDocument, settings: SettingsFile
) -> ScenarioSpec:
    return ScenarioSpec(
        key=scenario_file.name,
        description=scenario_file.description,
        prompt=scenario_file.task.prompt,
        setup=tuple(scenario_file.setup.commands),
        post=tuple(PostScript(**dict(script)) for script in scenario_file.scripts.post),
        limits=TrialLimits(**dict(scenario_file.run)),
        tags=tuple(dict.fromkeys(scenario_file.tags)),
        tier=scenario_file.tier,
        cost=scenario_file.cost,
        record_tool=scenario_file.record_tool,
        hidden=settings.hidden if scenario_file.hidden is None else tuple(scenario_file.hidden),
        matrix=None
        if scenario_file.tool_matrix is None
        else tuple(
            MatrixEntry(target=entry.tool, models=tuple(entry.models)) for entry in scenario_file.tool_matrix
        ),
        criteria=criteria,
        file=document.file,
        line=document.positions.line(("name",)),
    )
