"""One scenario file of llm-tool-test, translated."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluators.criteria import CompositeWeights, Criteria
from evaluators.gates import Gate
from evaluators.gates.informing_scripts import EvaluatorScript
from evaluators.judges.rubric import JudgeCriteria
from evaluators.model import Json
from scenarios.formats.llm_tool_test.config_file import Settings, read_tool
from scenarios.formats.llm_tool_test.fixture_paths import find_folder, holds, is_outside
from scenarios.formats.llm_tool_test.gate_reader import read_gates
from scenarios.formats.llm_tool_test.rubric_reader import read_judge
from scenarios.formats.llm_tool_test.scenario_lints import lints
from scenarios.formats.llm_tool_test.scenario_models import ScenarioFile
from scenarios.formats.positions import Document, Location
from scenarios.formats.problems import Problem
from scenarios.formats.upload import UploadedFiles
from scenarios.formats.validation import validate, without_wrong_parts
from scenarios.spec import Cost, Limits, MatrixEntry, PostScript, ScenarioSpec

_STAND_INS: dict[Location, Json] = {
    ("name",): "?",
    ("task",): "?",
    ("evaluation", "judge", "pass_threshold"): 1.0,
}
"""For parts that are wrong and needed to look at the others; they are in no result."""


@dataclass
class Reading:
    """What became of one file. Without a `spec` the problems say why."""

    document: Document
    spec: ScenarioSpec | None = None
    fixture_folder: str | None = None
    """Where in the upload the fixture is."""
    template: str = ""
    """How the file names it."""
    problems: list[Problem] = field(default_factory=list)


def read_scenario(document: Document, upload: UploadedFiles, settings: Settings) -> Reading:
    """Translate one document; every problem of it is in the result."""
    value, from_config = _plain(document.value)
    found, problems = validate(ScenarioFile, value, document)
    reading = Reading(document, problems=problems)
    # What is right in a broken file is read on, so that all its problems are told at once.
    rest = found or without_wrong_parts(ScenarioFile, value, _STAND_INS)
    if rest is None:
        return reading
    _find_fixture(reading, rest, upload, settings)
    criteria = _criteria(reading, rest, upload, settings, from_config=from_config)
    if found is not None:
        reading.problems += lints(found, criteria, document)
        reading.spec = _spec(found, criteria, document)
    return reading


def _plain(value: Json) -> tuple[Json, bool]:
    """Return a document without empty keys, and whether its tool is that of the settings."""
    value = _without_empty(value)
    if value.get("target") != "from_config":
        return value, False
    return {key: item for key, item in value.items() if key != "target"}, True


def _without_empty(value: Json) -> Json:
    """A key without a value, such as `tags:`, counts as left out."""
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def _find_fixture(reading: Reading, found: ScenarioFile, upload: UploadedFiles, settings: Settings) -> None:
    name = found.template_folder.rstrip("/")
    if not name.strip():
        return
    if is_outside(name):
        reading.problems.append(_outside(reading.document, name))
        return
    folder = find_folder(upload, reading.document.file, name, settings.fixture_folders)
    if folder is None:
        reading.problems.append(_missing(reading.document, name))
    elif holds(folder, reading.document.file):
        reading.problems.append(_holds_itself(reading.document, name))
    else:
        reading.fixture_folder, reading.template = folder, name


def _outside(document: Document, name: str) -> Problem:
    return document.problem(
        ("template_folder",),
        f"'{name}' leads out of the upload.",
        fix="Name a folder of the upload, without a leading slash and without '..'.",
        id="format/fixture-outside",
    )


def _missing(document: Document, name: str) -> Problem:
    return document.problem(
        ("template_folder",),
        f"There is no folder '{name}' with files in the upload.",
        fix=f"Upload the folder that holds both the scenario and templates/{name}, or remove the key to start empty.",
        id="format/missing-fixture",
    )


def _holds_itself(document: Document, name: str) -> Problem:
    return document.problem(
        ("template_folder",),
        f"The folder '{name}' holds the scenario file itself, so the agent would read its own gates.",
        fix="Put the fixture's files into a folder of their own.",
        id="format/fixture-holds-scenario",
    )


def _criteria(
    reading: Reading, found: ScenarioFile, upload: UploadedFiles, settings: Settings, *, from_config: bool
) -> Criteria:
    tool, problems = read_tool(found.target, reading.document, upload, settings, from_config=from_config)
    reading.problems += problems
    return Criteria(
        tool=tool,
        gates=_gates(reading, found, tool.binary if tool else ""),
        scripts=tuple(_evaluators(found)),
        judge=_judge(reading, found, upload, settings),
        composite=CompositeWeights(**found.evaluation.composite.model_dump())
        if found.evaluation.composite
        else None,
    )


def _gates(reading: Reading, found: ScenarioFile, binary: str) -> tuple[Gate, ...]:
    inner, outer = found.evaluation.gates, found.gates
    if inner is not None and outer is not None:
        what = "Gates stand both in 'gates' and in 'evaluation.gates'."
        fix = "Keep those in 'evaluation.gates'."
        reading.problems.append(reading.document.problem(("gates",), what, fix=fix, id="format/gates-twice"))
    at = ("evaluation", "gates") if inner is not None else ("gates",)
    gates, problems = read_gates(
        inner if inner is not None else outer or [], reading.document, at, binary=binary
    )
    reading.problems += problems
    return gates


def _judge(
    reading: Reading, found: ScenarioFile, upload: UploadedFiles, settings: Settings
) -> JudgeCriteria | None:
    if found.evaluation.judge is None:
        return None
    judge, problems = read_judge(found.evaluation.judge, reading.document, upload, settings.fixture_folders)
    reading.problems += problems
    return judge


def _evaluators(found: ScenarioFile) -> list[EvaluatorScript]:
    return [
        EvaluatorScript(
            command=script.command,
            name=script.name,
            timeout_seconds=script.timeout_secs,
            network=script.network,
        )
        for script in found.scripts.evaluators
    ]


def _spec(found: ScenarioFile, criteria: Criteria, document: Document) -> ScenarioSpec:
    return ScenarioSpec(
        key=found.name,
        description=found.description,
        prompt=found.task.prompt,
        setup=tuple(found.setup.commands),
        post=tuple(
            PostScript(command=script.command, timeout_seconds=script.timeout_secs, network=script.network)
            for script in found.scripts.post
        ),
        limits=Limits(timeout_seconds=found.run.timeout_secs, max_turns=found.run.max_turns),
        tags=tuple(dict.fromkeys(found.tags)),
        tier=found.tier,
        cost=Cost(max_usd=found.cost.max_usd, cache=found.cost.cache),
        matrix=_matrix(found),
        criteria=criteria,
        file=document.file,
        line=document.positions.line(("name",)),
    )


def _matrix(found: ScenarioFile) -> tuple[MatrixEntry, ...] | None:
    if found.tool_matrix is None:
        return None
    return tuple(MatrixEntry(target=entry.tool, models=tuple(entry.models)) for entry in found.tool_matrix)
