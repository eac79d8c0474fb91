"""Grade captured evidence: in the web process without commands, on a worker with them."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Path, Query, Router, Schema, Status
from pydantic import BaseModel, Field

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import REFUSALS, ApiError, ErrorOut, not_found
from evalhub.web.rest.request_body import Key
from runs.engine.grading.evidence import Grading, select_scenario
from runs.engine.grading.grade import grade_by_files, runs_commands
from runs.engine.grading.requests import request_grading
from runs.models import GradeRequest
from runs.results.schemas import GradedOut
from runs.workers.job_runner import wait_for_result

router = Router(tags=["grade"])


class Patience(BaseModel):
    """Seconds to wait for a worker's result."""

    wait: Annotated[float, Field(ge=0, le=60)] = 60.0


class WaitingOut(Schema):
    """Grading is not finished; poll the URL."""

    id: int
    url: str


_ANSWERS = {200: GradedOut, 202: WaitingOut, REFUSALS: ErrorOut}


@router.post("/grade", auth=Bearer("run"), response=_ANSWERS)
def grade(request: ApiRequest, body: Grading, query: Query[Patience]) -> Status[Any]:
    """Grade captured evidence against a scenario without storing it; requires the runner role.

    Gates that run a command get no verdict unless the token may run commands. Then a worker grades; if it
    takes longer than `wait`, the answer is a URL to poll.
    """
    if not request.access.may("grade with commands") or not runs_commands(select_scenario(body)):
        return Status(200, grade_by_files(body))
    row = request_grading(request.access.project, body, by=request.access.user)
    wait_for_result(row, query.wait)
    return _answer(row)


@router.get("/grade/{request_id}", auth=Bearer("grade with commands"), response=_ANSWERS)
def get_grading(request: ApiRequest, request_id: Path[Key]) -> Status[Any]:
    """Get the result of grading by a worker; kept for an hour."""
    row = GradeRequest.objects.filter(project=request.access.project, pk=request_id).first()
    if row is None:
        raise not_found("grading", request_id)
    return _answer(row)


def _answer(row: GradeRequest) -> Status[Any]:
    result = row.result
    if result is None:
        return Status(202, {"id": row.pk, "url": f"/api/v1/grade/{row.pk}"})
    if refused := result.get("refused"):
        raise ApiError(422, refused["detail"], id=refused["id"], problems=refused["problems"])
    return Status(200, result["graded"])
