"""The gate on files that are not the task."""

from __future__ import annotations

from typing import ClassVar, Literal

from evaluators.evidence import Evidence
from evaluators.gates.base_gate import BaseGate
from evaluators.model import Score

_SHOWN = 5


class ProtectedUnchanged(BaseGate):
    """The agent changed no protected file, and added none where a pattern matches."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["protected_unchanged"] = "protected_unchanged"

    def check(self, evidence: Evidence) -> Score:
        changed = evidence.protected_changes
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        message = (
            f"The agent changed protected files: {', '.join(changed[:_SHOWN])}{more}."
            if changed
            else "The agent changed no protected file."
        )
        return self.score(not changed, message, expected=0, actual=len(changed))
