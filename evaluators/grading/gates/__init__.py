"""Layer 2: the deterministic checks of a scenario, one small class for each kind of gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, get_args

from pydantic import Field

from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.base_gate import BaseGate
from evaluators.grading.gates.command_gates import (
    CommandOutputContains,
    CommandOutputMatches,
    CommandRan,
    CommandSucceeds,
    Script,
)
from evaluators.grading.gates.file_gates import FileContains, FileExists, FileMatches, ProtectedUnchanged
from evaluators.grading.gates.json_path_gate import CommandJsonPath
from evaluators.grading.gates.transcript_gate import (
    AnswerLacks,
    McpCalled,
    McpNotCalled,
    NoTranscriptErrors,
    SkillLoaded,
    SkillNotLoaded,
    TranscriptMatches,
)
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
    | TranscriptMatches
    | AnswerLacks
    | CommandRan
    | SkillLoaded
    | SkillNotLoaded
    | McpCalled
    | McpNotCalled
    | ProtectedUnchanged
    | Script,
    Field(discriminator="type"),
]

GATES: dict[str, type[BaseGate]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(Gate)[0])
}


def score_gates(gates: Sequence[Gate], evidence: TrialEvidence) -> tuple[Score, ...]:
    """Return the score of every gate in the declared order; a failure does not stop the others."""
    return tuple(gate.check(evidence) for gate in gates)
