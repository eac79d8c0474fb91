"""The gate on files that are not the task."""

from __future__ import annotations

from typing import ClassVar, Literal

from evaluators.grading.evidence import Evidence
from evaluators.grading.gates.base_gate import BaseGate
from evaluators.model import Score
from evaluators.name_lists import list_names

_SHOWN = 5


class ProtectedUnchanged(BaseGate):
    """The agent changed no protected file, and added none where a pattern matches."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["protected_unchanged"] = "protected_unchanged"

    def check(self, evidence: Evidence) -> Score:
        changed = evidence.protected_changes
        message = (
            f"The agent changed protected files: {list_names(changed, _SHOWN)}."
            if changed
            else "The agent changed no protected file."
        )
        return self.score(not changed, message, expected=0, actual=len(changed))
