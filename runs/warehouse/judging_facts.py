"""What a page needs to know beside a judging, read in the judging's own query."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from evalhub.teams.models import Project
from runs.models import JudgeCalibration, JudgingRecord, Review, RoundItem


def with_facts(judgings: QuerySet[JudgingRecord], project: Project) -> QuerySet[JudgingRecord]:
    """Return the judgings with what `Facts` reads."""
    calibrated = JudgeCalibration.objects.filter(
        JudgeCalibration.calibrated(project), model=OuterRef("model"), rubric=OuterRef("rubric")
    )
    waiting = RoundItem.objects.filter(judging=OuterRef("pk"), at=None).values("round")[:1]
    return judgings.annotate(
        known_calibrated=Exists(calibrated),
        waiting_round=Subquery(waiting),
        has_reviews=Exists(Review.objects.filter(judging=OuterRef("pk"))),
    )


class Facts:
    """Facts of one judging of `with_facts`."""

    def __init__(self, judging: JudgingRecord) -> None:
        values = vars(judging)
        self.unsure: bool = judging.counts and not values["known_calibrated"]
        """Whether its judge decides and is not calibrated."""
        self.round: int | None = values["waiting_round"]
        """The review round in which it waits for a label."""
        self.is_reviewed: bool = values["has_reviews"]
