"""Layer 2: deterministic checks that a scenario's author writes down, one small class a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

from pydantic import Field

from evaluators.evidence import Evidence
from evaluators.gates.base import BaseGate
from evaluators.gates.commands import CommandOutputContains, CommandOutputMatches, CommandSucceeds
from evaluators.gates.files import FileContains, FileExists, FileMatches
from evaluators.gates.json_path import CommandJsonPath
from evaluators.gates.scripts import Script
from evaluators.gates.transcript import NoTranscriptErrors
from evaluators.model import Score

__all__ = ["GATES", "BaseGate", "Gate", "scores"]

Gate = Annotated[
    CommandSucceeds
    | CommandOutputContains
    | CommandOutputMatches
    | CommandJsonPath
    | FileExists
    | FileContains
    | FileMatches
    | NoTranscriptErrors
    | Script,
    Field(discriminator="type"),
]

GATES: dict[str, type[BaseGate]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(Gate)[0])
}


def scores(gates: Sequence[Gate], evidence: Evidence) -> tuple[Score, ...]:
    """Return the verdict of every gate in the order in which they are declared; a failure stops none."""
    return tuple(gate.check(evidence) for gate in gates)
