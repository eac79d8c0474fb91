"""Judgings and their reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from django.forms.models import model_to_dict
from ninja import Path, Query, Router, Schema, Status
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.lib.timestamps import moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key, RequestBody
from evaluators.redaction import redact_json
from runs.exchange.exports.document import judging_json
from runs.models import JudgingRecord, Review
from runs.models.judging import ReviewWord
from runs.results.lookup import find_trial
from runs.results.schemas import JudgingContentOut
from runs.review.reviewing import review

router = Router()


class JudgingOut(JudgingContentOut):
    """A judge call with its prompts and answer, redacted."""

    id: int
    trial: int
    name: str
    counts: bool
    created: str
    system_prompt: str
    user_prompt: str
    raw_answer: str


class ReviewOut(Schema):
    id: int
    judging: int
    trial: int
    polarity: str
    position: int
    word: str
    note: str
    by: str | None
    at: str


class ReviewIn(RequestBody):
    """A review of one statement of a judge, or of its verdict.

    `position` counts from 0 in its positives or negatives, or in its criteria sorted by id; a verdict's is 0.
    """

    polarity: Literal["positive", "negative", "criterion", "verdict"]
    position: Annotated[int, Field(ge=0, le=1000)]
    word: ReviewWord
    note: Annotated[Text, Field(max_length=5000)] = ""


class ReviewFilters(Cursor):
    """Filters of the list of reviews."""

    suite: Text = ""


def _judging(judging: JudgingRecord) -> dict[str, Any]:
    texts = ("system_prompt", "user_prompt", "raw_answer")
    shown: dict[str, Any] = redact_json(
        {**judging_json(model_to_dict(judging)), **{name: judging.content.get(name, "") for name in texts}}
    )
    identity = {"id": judging.pk, "trial": judging.trial_id, "name": judging.name, "counts": judging.counts}
    return {**shown, **identity, "created": moment(judging.created)}


def _find_judging(request: ApiRequest, judging_id: int) -> JudgingRecord:
    rows = JudgingRecord.objects.select_related("trial__run__project")
    judging = rows.filter(trial__run__project=request.access.project, pk=judging_id).first()
    if judging is None:
        raise not_found("judging", judging_id)
    return judging


@router.get(
    "/trials/{trial_id}/judgings",
    auth=Bearer(),
    response=declare_answers(PageOut[JudgingOut]),
    tags=["judgings"],
)
def list_judgings(request: ApiRequest, trial_id: Path[Key], cursor: Query[Cursor]) -> dict[str, Any]:
    """List a trial's judge calls, newest first."""
    rows = JudgingRecord.objects.filter(trial=find_trial(request, trial_id))
    return page_of(request, rows, cursor, lambda judgings: [_judging(each) for each in judgings])


@router.get("/judgings/{judging_id}", auth=Bearer(), response=declare_answers(JudgingOut), tags=["judgings"])
def get_judging(request: ApiRequest, judging_id: Path[Key]) -> dict[str, Any]:
    """Get one judge call."""
    return _judging(_find_judging(request, judging_id))


@router.post(
    "/judgings/{judging_id}/reviews",
    auth=Bearer("review"),
    response=declare_answers(ReviewOut, status=201),
    tags=["reviews"],
)
def create_review(request: ApiRequest, judging_id: Path[Key], body: ReviewIn) -> Status[dict[str, Any]]:
    """Review one statement of a judge; replaces your previous review of it."""
    row = review(
        _find_judging(request, judging_id),
        by=request.access.user,
        polarity=body.polarity,
        position=body.position,
        word=body.word.value,
        comment=body.note,
    )
    return Status(201, _reviews([row])[0])


@router.get("/reviews", auth=Bearer(), response=declare_answers(PageOut[ReviewOut]), tags=["reviews"])
def list_reviews(request: ApiRequest, filters: Query[ReviewFilters]) -> dict[str, Any]:
    """List the reviews of judges' statements, newest first."""
    rows = Review.objects.filter(judging__trial__run__project=request.access.project)
    if filters.suite:
        rows = rows.filter(judging__trial__run__suite__slug=filters.suite)
    return page_of(request, rows.select_related("judging", "by"), filters, _reviews)


def _reviews(rows: Sequence[Review]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.pk,
            "judging": row.judging_id,
            "trial": row.judging.trial_id,
            "polarity": row.polarity,
            "position": row.position,
            "word": row.word,
            "note": row.note,
            "by": row.by.get_username() if row.by else None,
            "at": moment(row.at),
        }
        for row in rows
    ]
