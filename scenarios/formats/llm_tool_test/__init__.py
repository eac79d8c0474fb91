"""Scenario files of llm-tool-test: one YAML file each, with templates, rubrics and settings."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence

from evaluators.model import Json
from scenarios.formats.llm_tool_test.config_file import FILE_NAME, read_settings
from scenarios.formats.llm_tool_test.scenario_models import FIXTURE_FOLDERS
from scenarios.formats.llm_tool_test.scenario_reader import (
    ReadScenario,
    contains_file,
    find_folder,
    is_outside,
    list_candidates,
    read_scenario,
)
from scenarios.formats.parsed import ParsedSuite, PositionedDocument, Problem, find_repeated
from scenarios.formats.upload import (
    TARGETS_FILES,
    Format,
    Parsed,
    UploadedFiles,
    find_targets_file,
    in_fixture,
)

NAME = "llm_tool_test"
_OWN_KEYS = {"template_folder", "evaluation", "tool_matrix"}
_SHARED_KEYS = {"name", "task", "target", "gates", "setup", "scripts", "tier", "tags", "run"}


def matches(path: str, value: Json) -> bool:
    """Return whether a document is a scenario: one unique key and another, or three shared keys.

    Rubrics (`criteria`), targets files and settings of other programs do not match.
    """
    if not path.endswith((".yaml", ".yml")) or not isinstance(value, dict):
        return False
    unique, shared = _OWN_KEYS & value.keys(), _SHARED_KEYS & value.keys()
    return (bool(unique) and len(unique | shared) > 1) or len(shared) > 2 or {"task", "gates"} <= shared


def parse(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> Parsed:
    """Parse all scenarios of an upload as one suite with the upload's name."""
    settings, problems = read_settings(upload)
    readings = [read_scenario(document, upload, settings) for document in documents]
    for reading in readings:
        problems += reading.problems
    problems += _repeated_names(readings)
    problems = list(dict.fromkeys(problems))
    refusals = tuple(problem for problem in problems if not problem.lint)
    lints = tuple(sorted(problem for problem in problems if problem.lint))
    if refusals:
        return Parsed(problems=refusals + lints)
    names = _fixture_names(readings)
    targets_file, targets_text = find_targets_file(upload)
    suite = ParsedSuite(
        name=upload.name,
        format=NAME,
        scenarios=tuple(
            reading.spec
            if reading.fixture_folder is None
            else reading.spec.model_copy(update={"fixture": names[reading.fixture_folder]})
            for reading in readings
            if reading.spec
        ),
        fixtures={
            name: tuple(file for file in upload.below(folder) if "scenarios" not in file.path.split("/")[:-1])
            for folder, name in names.items()
        },
        lints=lints,
        targets_text=targets_text,
        targets_file=targets_file,
        settings=settings.kept,
    )
    return Parsed(suites=(suite,))


def fixture_folders(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> frozenset[str]:
    """Return the folders used as fixtures, ignoring scenarios inside a fixture."""
    settings, _ = read_settings(upload)
    folders: set[str] = set()
    for document in documents:
        name = document.value.get("template_folder")
        if in_fixture(document.file, folders) or not isinstance(name, str) or is_outside(name):
            continue
        folder = find_folder(upload, document.file, name.rstrip("/"), settings.fixture_folders)
        if folder is not None and not contains_file(folder, document.file):
            folders.add(folder)
    return frozenset(folders)


def companions(document: PositionedDocument) -> tuple[str, ...]:
    """Return the paths that a scenario references, to read a single file."""
    value = document.value if isinstance(document.value, dict) else {}
    judge = (
        (value.get("evaluation") or {}).get("judge") if isinstance(value.get("evaluation"), dict) else None
    )
    rubric = judge.get("rubric") if isinstance(judge, dict) else None
    named = [FILE_NAME, *TARGETS_FILES]
    if isinstance(rubric, str):
        named += [rubric, *(posixpath.join(folder, rubric) for folder in FIXTURE_FOLDERS)]
    folder = value.get("template_folder")
    if isinstance(folder, str) and folder.strip() and not is_outside(folder):
        named += list_candidates(folder, FIXTURE_FOLDERS)
    return tuple(named)


def _repeated_names(readings: Sequence[ReadScenario]) -> list[Problem]:
    documents = ((reading.spec.key, reading.document) for reading in readings if reading.spec)
    return [
        document.problem(
            ("name",),
            f"Duplicate scenario '{name}', also in {earlier.file}.",
            fix="Give each scenario of a suite a unique name.",
            id="format/duplicate-scenario",
        )
        for name, document, earlier in find_repeated(documents)
    ]


def _fixture_names(readings: Sequence[ReadScenario]) -> Mapping[str, str]:
    """Return fixture names by folder: as written in scenarios, with the path if two folders share a name."""
    names: dict[str, str] = {}
    for reading in readings:
        if reading.fixture_folder is not None:
            names.setdefault(reading.fixture_folder, reading.template)
    counts = Counter(names.values())
    return {folder: folder if counts[name] > 1 or name in names else name for folder, name in names.items()}


FORMAT = Format(NAME, matches, parse, fixture_folders, companions)
