"""People's reviews of judges' statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ninja import Query, Router, Schema

from evalhub.lib.storable_text import Text
from evalhub.lib.timestamps import moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from runs.models import Review

router = Router()


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


class ReviewFilters(Cursor):
    """Filters of the list of reviews."""

    suite: Text = ""


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
