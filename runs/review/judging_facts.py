"""What a page needs to know beside judgings."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from evalhub.teams.models import Project
from runs.models import JudgeCalibration, JudgingRecord, Review, Run
from runs.review.calibrations import JudgeVersion


def uncalibrated_judges(run: Run) -> list[JudgeVersion]:
    """Return the judge versions that decide in a run and are not calibrated, by name. One query."""
    judgings = JudgingRecord.objects.filter(~_is_calibrated(run.project), trial__run=run, counts=True)
    rows = judgings.order_by("model", "rubric").values_list("model", "rubric").distinct()
    return [JudgeVersion(*row) for row in rows]


def _is_calibrated(project: Project) -> Exists:
    return Exists(
        JudgeCalibration.objects.filter(
            JudgeCalibration.calibrated(project), model=OuterRef("model"), rubric=OuterRef("rubric")
        )
    )


def with_facts(judgings: QuerySet[JudgingRecord], project: Project) -> QuerySet[JudgingRecord]:
    """Return the judgings with what `Facts` reads."""
    return judgings.annotate(
        known_calibrated=_is_calibrated(project),
        has_reviews=Exists(Review.objects.filter(judging=OuterRef("pk"))),
    )


class JudgingFacts:
    """Facts of one judging of `with_facts`."""

    def __init__(self, judging: JudgingRecord) -> None:
        values = vars(judging)
        self.unsure: bool = judging.counts and not values["known_calibrated"]
        """Whether its judge decides and is not calibrated."""
        self.is_reviewed: bool = values["has_reviews"]
