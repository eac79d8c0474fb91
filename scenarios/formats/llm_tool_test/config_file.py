"""Read `llm-tool-test-config.toml`, the tool and `evaluation.gates`, with a line for every problem."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

import yaml

from evaluators.grading.gates import GATES, Gate
from evaluators.grading.gates.base_gate import replacement_gate
from evaluators.model import Json
from evaluators.patterns import PatternError, compile_pattern
from evaluators.tool_use.tool import Tool
from scenarios.formats.llm_tool_test.scenario_models import SettingsFile
from scenarios.formats.parsed import (
    Location,
    PositionedDocument,
    Problem,
    ScenarioFileError,
    describe_kind,
    did_you_mean,
    validate,
)
from scenarios.formats.secrets import is_credential
from scenarios.formats.text_files import read_toml
from scenarios.formats.upload import UploadedFiles
from scenarios.guidance import tool_file_problems
from scenarios.tool_variables import named_in_headers, named_variables

_VALUE_IDS = {
    "pattern": "format/bad-regex",
    "path": "format/bad-json-path",
    "assertion": "format/bad-assertion",
}
SPELLED = {"timeout_seconds": "timeout_secs"}
"""How files spell fields of gates."""


def read_gates(
    items: Sequence[Json], document: PositionedDocument, at: Location, *, binary: str = ""
) -> tuple[tuple[Gate, ...], list[Problem]]:
    """Return the valid gates in order, and the problems of the others.

    `binary` is the scenario's tool, to suggest replacements for legacy gates.
    """
    gates: list[Gate] = []
    problems: list[Problem] = []
    for index, item in enumerate(items):
        gate, gate_problems = _read_gate(item, document, (*at, index), binary)
        problems += gate_problems
        if gate is not None:
            gates.append(gate)
    return tuple(gates), problems


def _read_gate(
    item: Json, document: PositionedDocument, at: Location, binary: str
) -> tuple[Gate | None, list[Problem]]:
    if not isinstance(item, dict):
        what = f"A gate must be a mapping with a 'type', not {describe_kind(item)}."
        named = isinstance(item, str) and item in GATES
        fix = f"Write '- type: {item}'." if named else "Write '- type:' with the gate's keys below."
        return None, [document.problem(at, what, fix=fix, id="format/wrong-type")]
    if "type" not in item:
        what = "The gate has no 'type'."
        return None, [document.problem(at, what, fix="Add 'type:'.", id="format/missing-field")]
    name = item["type"]
    if not isinstance(name, str) or name not in GATES:
        return None, [_no_such_gate(item, document, (*at, "type"), binary)]
    gate, problems = validate(
        GATES[name], _with_field_names(item), document, at, value_ids=_VALUE_IDS, spelled=SPELLED
    )
    # `GATES` contains exactly the classes of the union.
    return cast(Gate | None, gate), problems


def _with_field_names(item: dict[str, Json]) -> dict[str, Json]:
    fields = {written: name for name, written in SPELLED.items()}
    return {fields.get(key, key): value for key, value in item.items()}


def _no_such_gate(item: dict[str, Json], document: PositionedDocument, at: Location, binary: str) -> Problem:
    name = item["type"]
    if not isinstance(name, str):
        what = f"The type of a gate must be text, not {describe_kind(name)}."
        return document.problem(at, what, fix="Write the gate's type as text.", id="format/wrong-type")
    if (instead := replacement_gate(name, item, binary=binary)) is not None:
        what = f"The legacy gate '{name}' was replaced by a generic one."
        return document.problem(
            at, what, fix=f"Write {_on_one_line(instead)} instead.", id="format/former-gate"
        )
    fix = did_you_mean(name, GATES) or f"Use one of {', '.join(GATES)}."
    return document.problem(at, f"Unknown gate '{name}'.", fix=fix, id="format/unknown-gate")


def _on_one_line(gates: str) -> str:
    (gate,) = yaml.safe_load(gates)
    flow = yaml.safe_dump(gate, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000)
    return f"- {flow.strip()}"


FILE_NAME = "llm-tool-test-config.toml"
RateOf = Callable[[str, str], float | None]
"""Returns a model's known rate per million tokens, by its name and `input` or `output`; None for an unknown one."""

_ABOVE_ALL = {"input": 0.5, "output": 1.0}
"""US dollars per 1,000 tokens that no list price reaches: the most expensive models cost 0.15 and 0.6."""
_FACTOR = 1000
_ABOUT = (300, 3000)
"""The ratios to a known rate that count as a thousand times, because list prices change."""
RATE_PROBLEM = "format/rate-per-million"


def read_settings(upload: UploadedFiles) -> tuple[SettingsFile, list[Problem]]:
    """Read the settings file nearest to the root of an upload."""
    path = _settings_path(upload.files)
    if not path:
        return SettingsFile(), []
    try:
        document = read_toml(upload.files[path], path)
    except ScenarioFileError as error:
        return SettingsFile(), list(error.problems)
    settings_file, problems = validate(SettingsFile, document.value, document)
    if settings_file is None:
        return SettingsFile(), problems
    if settings_file.target:
        problems += target_problems(settings_file.target, document, ("target",), upload.variables)
    problems += _rate_hints(settings_file, document)
    for name in ("protected", "hidden"):
        problems += pattern_problems(getattr(settings_file, name) or (), document, (name,))
    return settings_file, problems


def known_rate_hints(files: Mapping[str, bytes], rate_of: RateOf) -> list[Problem]:
    """Return the hints at rates of an upload's settings that known rates give; none for a broken file."""
    path = _settings_path(files)
    if not path:
        return []
    try:
        document = read_toml(files[path], path)
    except ScenarioFileError:
        return []
    settings_file, _ = validate(SettingsFile, document.value, document)
    return list(_rate_hints(settings_file, document, rate_of)) if settings_file else []


def _rate_hints(
    settings_file: SettingsFile, document: PositionedDocument, rate_of: RateOf | None = None
) -> Iterator[Problem]:
    """Yield a hint for each rate that is about a thousand times a known one, without known ones for impossible rates."""
    for model, rates in settings_file.models.items():
        for direction, impossible in _ABOVE_ALL.items():
            name = f"{direction}_cost_per_1k_tokens"
            rate: float = getattr(rates, name)
            known = rate_of(model, direction) if rate_of else None
            if why := _why(rate, known, impossible):
                yield document.problem(
                    ("models", model, name),
                    f"{rate:g} USD per 1,000 tokens is {why}.",
                    fix=f"If it is a price per million tokens, write {rate / _FACTOR:g}.",
                    id=RATE_PROBLEM,
                    lint=True,
                )


def _why(rate: float, known: float | None, impossible: float) -> str:
    if known:
        least, most = _ABOUT
        is_about = least <= rate * _FACTOR / known <= most
        return f"{round(rate * _FACTOR / known):,} times litellm's price" if is_about else ""
    return "more than any model's list price" if rate >= impossible else ""


def _settings_path(files: Mapping[str, bytes]) -> str:
    paths = [path for path in files if posixpath.basename(path) == FILE_NAME]
    return min(paths, key=lambda path: (path.count("/"), path), default="")


def target_problems(
    target: Tool, document: PositionedDocument, at: Location, variables: frozenset[str] | None = None
) -> list[Problem]:
    """Return the problems and lints of a tool's pattern and environment; `variables` as in `UploadedFiles`."""
    problems = [*_variable_problems(target.env, named_variables, document, (*at, "env"), variables)]
    if target.mcp:
        place = (*at, "mcp", "headers")
        problems += _variable_problems(target.mcp.headers, named_in_headers, document, place, variables)
    problems += [
        document.problem((*at, "files"), sentence, fix="Fix the path.", id="format/tool-file-outside")
        for sentence in tool_file_problems(target.files)
    ]
    if target.mcp and (target.binary.strip() or target.command_pattern.strip()):
        what = "The tool under test is either an MCP server or a program."
        fix = "Keep 'mcp', or 'binary' and 'command_pattern'."
        problems.append(document.problem((*at, "mcp"), what, fix=fix, id="format/two-tools"))
    if target.command_pattern.strip():
        problems += _pattern_problems(target.command_pattern, document, (*at, "command_pattern"))
    return problems


def _variable_problems(
    values: Mapping[str, str],
    named: Callable[[Mapping[str, str]], Iterable[tuple[str, str]]],
    document: PositionedDocument,
    at: Location,
    variables: frozenset[str] | None,
) -> Iterator[Problem]:
    """Yield the credentials among values, and the variables that they name and the worker lacks."""
    in_headers = named is named_in_headers
    for name, value in values.items():
        if is_credential(name, value):
            written = _reference(name, value) if in_headers else f"${{{name}}}"
            yield document.problem(
                (*at, name),
                f"'{name}' looks like a credential. Secrets are never stored.",
                fix=f"Write {name}: {written} and set the variable on the worker.",
                id="format/literal-secret",
            )
    for name, variable in named(values):
        if variables is not None and variable not in variables:
            yield document.problem(
                (*at, name),
                f"'{name}' needs the variable {variable}, which is not set here, or not allowed.",
                fix=f"Set {variable} on the worker and allow it in EVALHUB_ENV_ALLOW; trials are errors without it.",
                id="format/missing-variable",
                lint=True,
            )


def _reference(name: str, value: str) -> str:
    """Return how a header names its secret."""
    if value.lower().startswith("bearer "):
        return "Bearer ${{ TOKEN }}"
    return f"${{{{ {name.upper().replace('-', '_')} }}}}"


def _pattern_problems(pattern: str, document: PositionedDocument, at: Location) -> list[Problem]:
    try:
        compile_pattern(pattern)
    except PatternError as error:
        return [
            document.problem(
                at,
                str(error),
                fix="Fix the pattern.",
                id="format/bad-regex",
            )
        ]
    return []


def pattern_problems(patterns: Sequence[str], document: PositionedDocument, at: Location) -> list[Problem]:
    """Return the problems of patterns for files of the workspace."""
    return [
        document.problem(at, sentence, fix="Fix the path.", id="format/file-outside")
        for sentence in tool_file_problems(patterns)
    ]


def read_tool(
    scenario_target: Tool | None,
    document: PositionedDocument,
    upload: UploadedFiles,
    settings: SettingsFile,
    *,
    from_config: bool,
) -> tuple[Tool | None, list[Problem]]:
    """Return the tool of a scenario, or None without one.

    The pattern is the scenario's, else that of the settings for the same tool (llm-tool-test evaluation, Command
    Identification). Without one, a run takes its target's, else its project's; `upload.command_pattern` only says that
    there is one.
    """
    if from_config and settings.target is None:
        return None, [
            document.problem(
                ("target",),
                f"The upload has no {FILE_NAME} with a [target] table.",
                fix="Add the file to the upload, or define the tool in the scenario.",
                id="format/no-settings",
            )
        ]
    problems = (
        target_problems(scenario_target, document, ("target",), upload.variables) if scenario_target else []
    )
    target = scenario_target or settings.target or Tool()
    if target.mcp:
        return target, problems
    pattern = target.command_pattern or _shared_pattern(target, settings)
    if not target.binary.strip() and not (pattern or upload.command_pattern).strip():
        return None, problems
    return target.model_copy(update={"command_pattern": pattern}), problems


def _shared_pattern(target: Tool, settings: SettingsFile) -> str:
    shared = settings.target
    if shared is None or (shared.binary and target.binary and shared.binary != target.binary):
        return ""
    return shared.command_pattern
