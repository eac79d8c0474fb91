"""Uploading suites, with the targets file that may come with them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.datastructures import MultiValueDict
from ninja import File, Schema, Status, UploadedFile

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, ProblemOut, answers
from runs.api.targets import TargetOut, target_json
from runs.targets.import_targets import import_uploaded_targets
from scenarios.api import suites
from scenarios.api.schemas import ImportedOut, imported_json
from scenarios.bundle_limits import MAX_ARCHIVE_BYTES
from scenarios.forms import UploadForm
from scenarios.imports import import_files

router = suites.router
"""That of reading suites: two routers with operations at one address would hide each other's."""


class UploadedOut(Schema):
    suites: list[ImportedOut]
    targets: list[TargetOut]
    """Those of the bundle's targets file, as they are now; `accepted` is false for proposals."""
    target_problems: list[ProblemOut]
    """What is wrong with the targets file; the suites are kept all the same."""


# It stands here and not beside the reading of suites, for only `runs` knows what a target is.
@router.post(
    "/suites",
    auth=Bearer("upload"),
    response=answers(UploadedOut, status=201),
    operation_id="scenarios_api_suites_upload_suites",
)
def upload_suites(request: ApiRequest, file: File[list[UploadedFile]]) -> Status[dict[str, Any]]:
    """Store the suites of a scenario file, of several, or of a zip or tar with their fixtures and targets.

    The same content again is the same version. Files that cannot be taken are refused with every problem of
    them, and then nothing is stored. Targets that come with them are proposed, and used once an admin has accepted
    them; an evalhub for one person takes them over at once.
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
    imported = import_files(form.bundle(), project=access.project, by=access.user)
    versions = [each.version for each in imported]
    # An upload is no acceptance, not even an admin's: on the page it takes a click of its own.
    brought = import_uploaded_targets(versions, by=access.user, accepted=settings.EMBEDDED)
    whole = access.may("manage")
    answer = {
        "suites": [imported_json(each) for each in imported],
        "targets": [target_json(each, whole=whole) for each in brought.targets],
        "target_problems": [each.as_json() for each in brought.problems],
    }
    return Status(201, answer)
