"""Notes on the time axis of trends."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from ninja import Path, Query, Router, Schema, Status
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.lib.timestamps import moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key, RequestBody
from runs.compare.annotations import (
    LONGEST_ANNOTATION,
    add_annotation,
    may_remove,
    remove_annotation,
    trend_annotations,
)
from runs.models import Annotation
from runs.results.lookup import find_run, find_suite

router = Router(tags=["trends"])


class AnnotationOut(Schema):
    id: int
    suite: str | None
    """Null for all suites."""
    run: int | None
    """Null for an annotation of a day."""
    day: str
    text: str
    by: str | None
    created: str


class AnnotationFilters(Cursor):
    """Filters of the list of annotations."""

    suite: Text = Field("", description="Those of this suite and of all suites.")


class AnnotationIn(RequestBody):
    """A note at a run, or on a day for one suite or all."""

    text: Annotated[Text, Field(min_length=1, max_length=LONGEST_ANNOTATION)]
    run: Key | None = None
    day: date | None = None
    suite: Text = ""
    """Only with a day; a run has its suite."""


def _annotation_json(annotation: Annotation) -> dict[str, Any]:
    return {
        "id": annotation.pk,
        "suite": annotation.suite.slug if annotation.suite else None,
        "run": annotation.run_id,
        "day": annotation.day.isoformat(),
        "text": annotation.text,
        "by": annotation.by.get_username() if annotation.by else None,
        "created": moment(annotation.created),
    }


@router.get("/annotations", auth=Bearer(), response=declare_answers(PageOut[AnnotationOut]))
def list_annotations(request: ApiRequest, filters: Query[AnnotationFilters]) -> dict[str, Any]:
    """List the annotations of trends, newest first."""
    suite = find_suite(request, filters.suite) if filters.suite else None
    rows = trend_annotations(request.access.project, suite)
    return page_of(request, rows, filters, lambda page_rows: [_annotation_json(each) for each in page_rows])


@router.post("/annotations", auth=Bearer("annotate"), response=declare_answers(AnnotationOut, status=201))
def create_annotation(request: ApiRequest, body: AnnotationIn) -> Status[dict[str, Any]]:
    """Annotate trends at a run, or on a day."""
    if (body.run is None) == (body.day is None):
        raise ApiError(422, "Send either `run` or `day`.", id="annotation/run-or-day")
    annotation = add_annotation(
        request.access.project,
        by=request.access.user,
        text=body.text,
        run=find_run(request, body.run) if body.run is not None else None,
        suite=find_suite(request, body.suite) if body.suite else None,
        day=body.day,
    )
    return Status(201, _annotation_json(annotation))


@router.delete(
    "/annotations/{annotation_id}", auth=Bearer("annotate"), response=declare_answers(None, status=204)
)
def delete_annotation(request: ApiRequest, annotation_id: Path[Key]) -> Status[None]:
    """Remove an annotation of one's own; admins remove any."""
    annotation = trend_annotations(request.access.project).filter(pk=annotation_id).first()
    if annotation is None:
        raise not_found("annotation", annotation_id)
    if not may_remove(annotation, request.access):
        raise ApiError(403, "Only its author or an admin can remove an annotation.", id="api/forbidden")
    remove_annotation(annotation, by=request.access.user)
    return Status(204, None)
