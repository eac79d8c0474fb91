"""Import results of other programs, and export runs in tool-forge's format."""

from __future__ import annotations

from typing import Any

from ninja import File, Form, Path, Router, Schema, Status, UploadedFile

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import ApiError, declare_answers
from evalhub.web.rest.request_body import Key
from evaluators.grading.suite_result import suite_result
from runs.exchange.exports.result_formats import suite_run
from runs.exchange.exports.results_preview import preview_document
from runs.exchange.imports.import_results import import_results
from runs.exchange.imports.preview_results import PreviewedRun, preview_results
from runs.results.lookup import find_run
from scenarios.archives import MAX_ARCHIVE_BYTES

router = Router(tags=["results"])


class ResultsPreviewOut(Schema):
    """What a file of results holds, and what importing it would store."""

    program: str
    version: str
    """Of the program or of its format; empty if the file doesn't say."""
    imported: list[int]
    """The runs of an earlier import of the same file."""
    new: int
    """The number of runs that importing it would store."""
    runs: list[PreviewedRun]


class ImportedRunsOut(Schema):
    """The runs in a results file."""

    runs: list[int]
    """Empty for a dry run."""
    preview: ResultsPreviewOut | None
    """Null unless it is a dry run."""


class ResultsIn(Schema):
    dry_run: bool = False
    """Store nothing."""


@router.post("/results", auth=Bearer("upload"), response=declare_answers(ImportedRunsOut, status=201))
def create_results(
    request: ApiRequest, file: File[UploadedFile], form: Form[ResultsIn]
) -> Status[dict[str, Any]]:
    """Import another program's results as runs: an EvalSuiteResult, AgentV's JSON lines, promptfoo's JSON, JUnit XML, a log of Inspect, or llm-tool-test's results.jsonl or zipped results folder.

    Importing the same content again returns the existing runs. `dry_run` says what would be stored.
    """
    if (file.size or 0) > MAX_ARCHIVE_BYTES:
        raise ApiError(
            413,
            f"The upload is larger than {MAX_ARCHIVE_BYTES >> 20} MB. Split the results into several files.",
            id="api/too-large",
        )
    project, name = request.access.project, file.name or "results.json"
    if form.dry_run:
        preview = preview_results(project, file.read(), name)
        return Status(201, {"runs": [], "preview": preview_document(preview)})
    runs = import_results(project, file.read(), name, by=request.access.user)
    return Status(201, {"runs": [run.pk for run in runs], "preview": None})


@router.get("/runs/{run_id}/suite-result", auth=Bearer(), response=declare_answers(dict[str, Any]))
def get_suite_result(request: ApiRequest, run_id: Path[Key]) -> dict[str, Any]:
    """Export a run as an EvalSuiteResult; works for suites of every format."""
    return suite_result(suite_run(find_run(request, run_id)))
