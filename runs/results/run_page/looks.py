"""Show the looks of a run until a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalhub.lib.numbers import counted
from evaluators.statistics.looks import LookDecision, StoredLook
from evaluators.statistics.verdict_sentences import p_text
from runs.compare.looks import looks_of
from runs.models import Run
from runs.models.run import Arm
from runs.models.run_options import RunOptions

LABELS = {
    LookDecision.GO_ON: "Undecided",
    LookDecision.DECIDED: "Decided",
    LookDecision.FUTILE: "Stopped: little hope of a verdict",
    LookDecision.LIMIT: "Stopped at the limit",
}
MOST_NAMED = 5
"""Scenarios that a row names."""


@dataclass(frozen=True)
class ShownLook:
    """One row of the table."""

    look: StoredLook

    @property
    def decision(self) -> str:
        return LABELS[self.look.decision]

    @property
    def note(self) -> str:
        """Which scenarios got trials next, or why none did."""
        keys = self.look.undecided
        if not keys:
            return self.look.reason
        if len(keys) == self.look.scenarios:
            return "More trials of every scenario"
        rest = len(keys) - MOST_NAMED
        named = ", ".join(keys[:MOST_NAMED]) + (f" and {counted(rest, 'other')}" if rest > 0 else "")
        return f"More trials of {named}"

    @property
    def tests(self) -> list[tuple[str, str]]:
        """The p of the pass rate and of the scenario with the lowest, each with its level."""
        look = self.look
        return [(p_text(look.p), p_text(look.level)), (p_text(look.table_p), p_text(look.table_level))]


def shown_looks(run: Run) -> dict[str, Any]:
    """Return what the run's page shows of its looks; nothing for a run without a plan. No query."""
    options = RunOptions.model_validate(run.options)
    if not options.until_decided:
        return {}
    return {
        "looks": [ShownLook(each) for each in looks_of(run)],
        "most_trials": options.max_trials,
        "looked_with": _looked_with(run),
    }


def _looked_with(run: Run) -> int | None:
    """Return the run that shows the looks of another arm; None for the arm that keeps them. One query for these."""
    if run.arm not in (Arm.REFERENCE, Arm.PREVIOUS):
        return None
    beside = Run.objects.filter(reference=run if run.arm == Arm.REFERENCE else run.reference, arm=Arm.NEW)
    return beside.values_list("pk", flat=True).first()
