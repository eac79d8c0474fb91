"""Import results of other programs, and export runs in tool-forge's format."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from ninja import File, Path, Router, Schema, Status, UploadedFile

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers
from evalhub.web.rest.request_body import Key
from evaluators.grading.suite_result import suite_result
from runs.exchange.exports.ctrf import ctrf
from runs.exchange.exports.document import run_document
from runs.exchange.exports.exports import export_run
from runs.exchange.exports.suite_result import suite_run
from runs.exchange.imports.import_results import import_results
from runs.results.lookup import find_run
from scenarios.bundle_limits import MAX_ARCHIVE_BYTES

router = Router(tags=["results"])


class ImportedOut(Schema):
    """The runs in a results file."""

    runs: list[int]


@router.post("/results", auth=Bearer("upload"), response=declare_answers(ImportedOut, status=201))
def create_results(request: ApiRequest, file: File[UploadedFile]) -> Status[dict[str, Any]]:
    """Import another program's results as runs: an EvalSuiteResult, AgentV's JSON lines, promptfoo's JSON, or llm-tool-test's results.jsonl or zipped results folder.

    Importing the same content again returns the existing runs.
    """
    if (file.size or 0) > MAX_ARCHIVE_BYTES:
        raise ApiError(
            413,
            f"The upload is larger than {MAX_ARCHIVE_BYTES >> 20} MB. Split the results into several files.",
            id="api/too-large",
        )
    runs = import_results(
        request.access.project, file.read(), file.name or "results.json", by=request.access.user
    )
    return Status(201, {"runs": [run.pk for run in runs]})


@router.get("/runs/{run_id}/suite-result", auth=Bearer(), response=declare_answers(dict[str, Any]))
def get_suite_result(request: ApiRequest, run_id: Path[Key]) -> dict[str, Any]:
    """Export a run as an EvalSuiteResult; works for suites of every format."""
    return suite_result(suite_run(find_run(request, run_id)))


@router.get("/runs/{run_id}/ctrf", auth=Bearer(), response=declare_answers(dict[str, Any]))
def get_ctrf(request: ApiRequest, run_id: Path[Key]) -> dict[str, Any]:
    """Export a run as a Common Test Report (CTRF) with a test per trial."""
    return ctrf([run_document(find_run(request, run_id).pk)])


_ZIP = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}


@router.get(
    "/runs/{run_id}/llm-tool-test",
    auth=Bearer(),
    response=declare_answers(str),
    openapi_extra={"responses": {200: {"content": _ZIP}}},
)
def get_results_folder(request: ApiRequest, run_id: Path[Key]) -> HttpResponse:
    """Export a run as llm-tool-test's results folder, in a zip archive."""
    run = find_run(request, run_id)
    response = HttpResponse(export_run(run.pk, "llm-tool-test"), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="run-{run.pk}.llm-tool-test.zip"'
    return response
