"""People's reviews of judges' statements."""

from __future__ import annotations

from typing import Any

from ninja import Query, Router, Schema
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.columns import add_columns
from evalhub.web.rest.errors import declare_answers
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from runs.models import Review

router = Router()


@add_columns(Review, "id", "judging", "polarity", "position", "word", "note", "by", "at")
class ReviewOut(Schema):
    trial: int = Field(validation_alias="judging.trial_id")


class ReviewFilters(Cursor):
    """Filters of the list of reviews."""

    suite: Text = ""


@router.get("/reviews", auth=Bearer(), response=declare_answers(PageOut[ReviewOut]), tags=["reviews"])
def list_reviews(request: ApiRequest, filters: Query[ReviewFilters]) -> dict[str, Any]:
    """List the reviews of judges' statements, newest first."""
    rows = Review.objects.filter(judging__trial__run__project=request.access.project)
    if filters.suite:
        rows = rows.filter(judging__trial__run__suite__slug=filters.suite)
    return page_of(request, rows.select_related("judging", "by"), filters, list)
