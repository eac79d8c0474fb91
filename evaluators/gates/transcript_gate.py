"""The gate on the agent's use of the tool."""

from __future__ import annotations

from typing import ClassVar, Literal

from evaluators.evidence import Evidence
from evaluators.gates.base_gate import BaseGate
from evaluators.model import Score

_SHOWN = 5


class NoTranscriptErrors(BaseGate):
    """None of the tool's commands failed."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["no_transcript_errors"] = "no_transcript_errors"

    def check(self, evidence: Evidence) -> Score:
        if not evidence.transcript.events and not evidence.transcript.text.strip():
            return self.score(False, "There is no transcript to look for errors in.", source="none")
        told = evidence.interaction
        if told.problem:
            return self.score(None, told.problem, error=told.problem, source=told.source)
        failed = [command.line for command in told.commands if command.failed]
        source = "structured events" if told.source == "events" else told.source
        message = (
            f"{told.error_count} of {told.total_commands} commands failed (source: {source}; "
            f"{told.unknown_exit} with unknown exit code)."
        )
        return self.score(
            told.error_count == 0,
            message,
            source=told.source,
            expected=0,
            actual=told.error_count,
            unknown_exit=told.unknown_exit,
            failed=failed[:_SHOWN],
        )
