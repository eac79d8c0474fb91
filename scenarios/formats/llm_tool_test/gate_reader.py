"""Read `evaluation.gates`, with a line for every problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import yaml

from evaluators.grading.gates import GATES, Gate
from evaluators.grading.gates.legacy_gates import replacement_gate
from evaluators.model import Json
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem
from scenarios.formats.validation import did_you_mean, kind, validate

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
        what = f"A gate must be a mapping with a 'type', not {kind(item)}."
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
        what = f"The type of a gate must be text, not {kind(name)}."
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
