"""Show a reassessment's scores beside the stored ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from runs.models import Job, ReassessedTrial, Reassessment, Run

MOST_SHOWN = 5
"""Reassessments of a run on its page."""


@dataclass(frozen=True)
class TrialPair:
    """One trial's stored and new result."""

    trial: int
    key: str
    before: str
    after: str
    score_before: float | None
    score_after: float | None
    note: str

    @property
    def changed(self) -> bool:
        return bool(self.after) and self.before != self.after


@dataclass(frozen=True)
class ReassessmentResult:
    """A reassessment with its trials."""

    made: Reassessment
    is_taken: bool = False
    """Whether a worker is at it."""
    pairs: list[TrialPair] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Return how many outcomes differ from the current ones."""
        return sum(pair.changed for pair in self.pairs)

    @property
    def can_adopt(self) -> bool:
        finished = self.made.finished is not None and self.made.adopted is None
        return finished and any(pair.after for pair in self.pairs)


def comparisons(run: Run) -> list[ReassessmentResult]:
    """Return a run's newest reassessments, newest first, with the trials that changed first. Three queries."""
    reassessments = list(run.reassessments.select_related("by", "adopted_by")[:MOST_SHOWN])
    rows = ReassessedTrial.objects.filter(reassessment__in=reassessments).select_related("trial__scenario")
    pairs: dict[int, list[TrialPair]] = {each.pk: [] for each in reassessments}
    for row in rows.defer("trial__detail", "trial__answer"):
        trial = row.trial
        pairs[row.reassessment_id].append(
            TrialPair(
                trial.pk,
                trial.scenario.key,
                trial.outcome,
                row.outcome,
                _judge(trial.scores),
                _judge(row.scores),
                row.note,
            )
        )
    jobs = Job.objects.filter(kind=Job.Kind.REASSESSMENT, subject__in=pairs).exclude(token="")
    taken = set(jobs.values_list("subject", flat=True))
    return [
        ReassessmentResult(
            reassessment,
            reassessment.pk in taken,
            sorted(pairs[reassessment.pk], key=lambda pair: (not pair.changed, pair.trial)),
        )
        for reassessment in reassessments
    ]


def _judge(scores: Iterable[dict[str, Any]]) -> float | None:
    return next((each.get("value") for each in scores if each["layer"] == each["name"] == "judge"), None)
