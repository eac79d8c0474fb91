"""The gate on the agent's commands."""

from __future__ import annotations

from typing import ClassVar, Literal

from evaluators.grading.evidence import Evidence
from evaluators.grading.gates.base_gate import BaseGate
from evaluators.model import Score

_SHOWN = 5


class NoTranscriptErrors(BaseGate):
    """None of the tool's commands failed."""

    needs_workspace: ClassVar[bool] = False

    type: Literal["no_transcript_errors"] = "no_transcript_errors"

    def check(self, evidence: Evidence) -> Score:
        metrics = evidence.interaction
        has_transcript = evidence.transcript.events or evidence.transcript.text.strip()
        if not has_transcript and metrics.source != "recorded":
            return self.score(False, "There is no transcript to check for errors.", source="none")
        if metrics.problem:
            return self.score(None, metrics.problem, error=metrics.problem, source=metrics.source)
        if metrics.source == "none":
            message = "No command was seen in this output."
            return self.score(True, message, source="none", expected=0, actual=None)
        failed = [command.line for command in metrics.commands if command.failed]
        source = "structured events" if metrics.source == "events" else metrics.source
        unknown = f"; {metrics.unknown_exit} with unknown exit code" if metrics.unknown_exit else ""
        unknown += f"; {metrics.estimated} estimated" if metrics.estimated else ""
        message = (
            f"{metrics.error_count} of {metrics.total_commands} commands failed (source: {source}{unknown})."
        )
        return self.score(
            metrics.error_count == 0,
            message,
            source=metrics.source,
            expected=0,
            actual=metrics.error_count,
            unknown_exit=metrics.unknown_exit,
            failed=failed[:_SHOWN],
        )
