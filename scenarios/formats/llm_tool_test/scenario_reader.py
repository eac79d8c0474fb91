"""Translate one scenario file of llm-tool-test."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluators.grading.criteria import Criteria
from evaluators.grading.gates import Gate
from evaluators.grading.gates.informing_scripts import EvaluatorScript
from evaluators.grading.gates.protected_gate import ProtectedUnchanged
from evaluators.grading.judges.rubric import JudgeCriteria
from evaluators.model import Json
from scenarios.formats.llm_tool_test.config_file import pattern_problems, read_tool
from scenarios.formats.llm_tool_test.fixture_paths import contains_file, find_folder, is_outside
from scenarios.formats.llm_tool_test.gate_reader import read_gates
from scenarios.formats.llm_tool_test.rubric_reader import read_judge
from scenarios.formats.llm_tool_test.scenario_lints import lints
from scenarios.formats.llm_tool_test.scenario_models import ScenarioFile, SettingsFile
from scenarios.formats.llm_tool_test.unprotected_files import lint_hidden_files, unprotected_lints
from scenarios.formats.parsed import CaseReading
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.upload import UploadedFiles
from scenarios.formats.validation import validate, without_wrong_parts
from scenarios.spec import MatrixEntry, PostScript, ScenarioSpec, TrialLimits

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
