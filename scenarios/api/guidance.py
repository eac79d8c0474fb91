"""Endpoints of guidance versions."""

from __future__ import annotations

from typing import Annotated, Any

from django.db import transaction
from ninja import Path, Query, Router, Status
from pydantic import Field

from evalhub.lib.storable_text import Text
from evalhub.teams import audit
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers, not_found
from evalhub.web.rest.pages import Cursor, PageOut, page_of
from evalhub.web.rest.request_body import Key, Name, RequestBody
from scenarios.api.schemas import GuidanceOut, GuidanceWithFilesOut
from scenarios.api.suites import find_suite
from scenarios.formats.parsed import FixtureFile
from scenarios.formats.upload import resolve_inside
from scenarios.guidance import Unplaced, place_documents
from scenarios.models import Guidance, Suite
from scenarios.naming import NameRefused, rename_guidance
from scenarios.storing import guidance_files, store_guidance

router = Router(tags=["guidance"])


class GuidanceFilters(Cursor):
    """Which guidance."""

    suite: Text = ""


class DocumentIn(RequestBody):
    """One document; the path is that in the workspace, such as AGENTS.md."""

    path: Name
    content: Text


class GuidanceIn(RequestBody):
    """A version of a suite's guidance: all of its documents."""

    suite: Name
    name: Annotated[Text, Field(max_length=120)] = ""
    files: Annotated[list[DocumentIn], Field(min_length=1, max_length=200)]


@router.get("/guidance", auth=Bearer(), response=declare_answers(PageOut[GuidanceOut]))
def list_guidance(request: ApiRequest, filters: Query[GuidanceFilters]) -> dict[str, Any]:
    """The guidance versions of the project, of one suite if asked."""
    rows = Guidance.objects.filter(suite__project=request.access.project)
    if filters.suite:
        rows = rows.filter(suite__slug=filters.suite)
    rows = rows.select_related("suite", "created_by").defer("files")
    return page_of(request, rows, filters)


@router.get("/guidance/{guidance_id}", auth=Bearer(), response=declare_answers(GuidanceWithFilesOut))
def get_guidance(request: ApiRequest, guidance_id: Path[Key]) -> Guidance:
    """One guidance version with its documents."""
    return _find(request, guidance_id)


def _find(request: ApiRequest, guidance_id: int) -> Guidance:
    rows = Guidance.objects.filter(suite__project=request.access.project, pk=guidance_id)
    guidance = rows.select_related("suite__project", "created_by").first()
    if guidance is None:
        raise not_found("guidance", guidance_id)
    return guidance


class GuidanceNameIn(RequestBody):
    """A version's new name; with `was`, only if its name is still this one."""

    name: Annotated[Text, Field(max_length=120)]
    was: Text | None = None


@router.patch("/guidance/{guidance_id}", auth=Bearer("upload"), response=declare_answers(GuidanceOut))
def rename(request: ApiRequest, guidance_id: Path[Key], body: GuidanceNameIn) -> Guidance:
    """Rename a guidance version; an empty name restores its number."""
    guidance = _find(request, guidance_id)
    try:
        rename_guidance(guidance, body.name, was=body.was, by=request.access.user)
    except NameRefused as error:
        raise ApiError(422, str(error), id="guidance/name") from error
    return guidance


@router.post("/guidance", auth=Bearer("upload"), response=declare_answers(GuidanceWithFilesOut, status=201))
def create_guidance(request: ApiRequest, body: GuidanceIn) -> Status[Guidance]:
    """Store documents as a version of a suite's guidance; the same content is the same version.

    A single document replaces the suite's only one, regardless of its path; several are matched by path.
    """
    files = _files(body)
    with transaction.atomic():
        # The lock prevents two requests from using the same number.
        suite = Suite.objects.select_for_update().get(pk=find_suite(request, body.suite).pk)
        upload = suite.uploads.select_related("guidance").first()
        try:
            files = place_documents(files, guidance_files(upload.guidance if upload else None))
        except Unplaced as error:
            raise ApiError(
                422, f"{error} Give each document the `path` of the one that it replaces.", id="guidance/path"
            ) from error
        guidance, new = store_guidance(
            suite, tuple(sorted(files, key=lambda file: file.path)), by=request.access.user, name=body.name
        )
        if new:
            audit.append_event(
                request.access.project, request.access.user, "guidance.create", guidance, suite=suite.slug
            )
    return Status(201, guidance)


def _files(body: GuidanceIn) -> tuple[FixtureFile, ...]:
    """Return the documents sorted by path. Raises `ApiError` for duplicate paths and paths outside the workspace."""
    by_path: dict[str, FixtureFile] = {}
    for document in body.files:
        path = resolve_inside("", document.path)
        if path in (None, ".") or path in by_path:
            raise ApiError(
                422,
                f"The path '{document.path}' is a duplicate or outside the workspace. Give each document a unique path inside.",
                id="guidance/path",
            )
        by_path[str(path)] = FixtureFile(str(path), document.content.encode())
    return tuple(by_path[path] for path in sorted(by_path))
