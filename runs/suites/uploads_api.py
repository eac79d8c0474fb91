"""Upload suites, with an optional targets file."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.datastructures import MultiValueDict
from ninja import File, Query, Schema, Status, UploadedFile

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, ProblemOut, declare_answers
from runs.targets.import_targets import import_uploaded_targets
from runs.targets.schemas import TargetOut
from scenarios.api import suites
from scenarios.api.schemas import ImportedOut
from scenarios.archives import MAX_ARCHIVE_BYTES
from scenarios.forms import UploadForm
from scenarios.imports import import_files

router = suites.router
"""Shared with the operations that read suites: of two routers at one address, one would hide the other."""


class UploadedOut(Schema):
    suites: list[ImportedOut]
    targets: list[TargetOut]
    """The targets of the bundle's targets file as stored now; `accepted` is false for proposals."""
    target_problems: list[ProblemOut]
    """Errors in the targets file; the suites are stored anyway."""
    target_hints: list[ProblemOut]
    """Fields in the targets file that are ignored."""


# Here and not beside the operations that read suites, because `scenarios` knows nothing of targets.
@router.post(
    "/suites",
    auth=Bearer("upload"),
    response=declare_answers(UploadedOut, status=201),
    operation_id="scenarios_api_suites_upload_suites",
)
def upload_suites(
    request: ApiRequest, file: File[list[UploadedFile]], strict: Query[bool] = False
) -> Status[dict[str, Any]]:
    """Upload scenario files, or a zip or tar with their fixtures and targets.

    Uploading the same content again returns the same version. If a file has errors, the answer lists all of
    them and nothing is stored. Targets become proposals, usable once an admin accepts them; an embedded
    evalhub imports them at once. `strict` refuses eval cases without `expect`, or with unknown keys in it.
    """
    if any((each.size or 0) > MAX_ARCHIVE_BYTES for each in file):
        raise ApiError(
            413,
            f"The upload is larger than {MAX_ARCHIVE_BYTES >> 20} MB. Split the suite.",
            id="bundle/too-large",
        )
    form = UploadForm({}, MultiValueDict({"file": list(file)}))
    if not form.is_valid():
        raise ApiError(422, str(form.errors["file"][0]), id="files/missing")
    access = request.access
    imported = import_files(form.bundle(), project=access.project, by=access.user, strict=strict)
    versions = [each.version for each in imported]
    # Uploading doesn't accept a target, not even for an admin: the page has a button for that.
    uploaded = import_uploaded_targets(versions, by=access.user, accepted=settings.EMBEDDED)
    answer = {
        "suites": imported,
        "targets": uploaded.targets,
        "target_problems": uploaded.problems,
        "target_hints": uploaded.hints,
    }
    return Status(201, answer)
