"""Store people's reviews of judges' statements, and of trials in which judge and gates disagree."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evalhub.teams import audit
from runs.errors import RequestError, StaleReview
from runs.models import JudgingRecord, Resolution, Review, Trial
from runs.models.review import Right
from runs.results.digests import judge_disagrees
from runs.results.layer_totals import ReadScore
from runs.review.calibrations import JudgeVersion, recalibrate


def _statements(judging: JudgingRecord, polarity: str) -> list[str]:
    """Return a judging's issues, highlights, criteria sorted by id, or its one verdict, by position."""
    if polarity == "verdict":
        return [] if judging.passed is None else ["verdict"]
    if polarity == "criterion":
        return sorted(judging.content.get("criteria") or {})
    return list(judging.content.get(f"{polarity}s") or ())


@transaction.atomic
def review(
    judging: JudgingRecord, *, by: User | None, polarity: str, position: int, word: str, comment: str = ""
) -> Review:
    """Store a person's review of a judge's statement or verdict, replacing their own last one.

    One of a verdict calibrates the judge.

    Raises `RequestError` if the position has no statement, and without a person.
    """
    check_person(by)
    statements = _statements(judging, polarity)
    if position >= len(statements):
        raise RequestError(
            f"Judging {judging.pk} has no {polarity} at position {position}. It has {len(statements)}, "
            "counted from 0."
        )
    row, _ = Review.objects.update_or_create(
        judging=judging,
        polarity=polarity,
        position=position,
        by=by,
        defaults={"word": word, "note": comment, "at": timezone.now()},
    )
    project = judging.trial.run.project
    if polarity == "verdict":
        recalibrate(project, JudgeVersion(judging.model, judging.rubric))
    audit.append_event(project, by, "review", f"judging {judging.pk}", word=word)
    return row


def check_person(by: User | None) -> None:
    """Raise `RequestError` unless there is a person: no review is anonymous."""
    if by is None or not by.pk:
        raise RequestError("A review needs a person. Sign in, or use a token that belongs to a person.")


def reviews_of(judgings: Iterable[int]) -> dict[tuple[int, str, int], list[Review]]:
    """Return the reviews of these judgings by judging, polarity and position, oldest first. One query."""
    by_statement: dict[tuple[int, str, int], list[Review]] = {}
    for row in Review.objects.filter(judging__in=tuple(judgings)).select_related("by").order_by("at", "pk"):
        by_statement.setdefault((row.judging_id, row.polarity, row.position), []).append(row)
    return by_statement


@transaction.atomic
def record_who_was_right(trial: Trial, *, right: str, note: str, by: User | None) -> Resolution:
    """Record who was right where judge and gates disagree.

    Raises `RequestError` if they agree, and `StaleReview` if somebody else resolved it first; the same person may
    correct it.
    """
    check_person(by)
    resolution, is_new = Resolution.objects.get_or_create(
        trial=trial, defaults={"right": right, "note": note, "by": by}
    )
    if is_new and not judge_disagrees(msgspec.convert(trial.scores, list[ReadScore])):
        raise RequestError(f"Judge and gates agree on trial {trial.pk}. There is nothing to resolve.")
    if not is_new:
        if resolution.by_id != (by.pk if by else None):
            name = resolution.by.get_username() if resolution.by else "Somebody"
            raise StaleReview(
                f"{name} resolved trial {trial.pk} as “{Right(resolution.right).label}”; nothing changed."
            )
        resolution.right, resolution.note, resolution.at = right, note, timezone.now()
        resolution.save(update_fields=["right", "note", "at"])
    audit.append_event(trial.run.project, by, "disagreement.resolve", f"trial {trial.pk}", right=right)
    return resolution
