"""Grading captured evidence: here where no command is needed, on a worker for those who may run some."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Path, Query, Router, Schema, Status
from pydantic import BaseModel, Field

from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import REFUSALS, ApiError, ErrorOut, not_found
from evalhub.web.rest.given import Key
from runs.api.schemas import GradedOut
from runs.execution.grading import Grading, grade_by_files
from runs.execution.grading.evidence import select_scenario
from runs.execution.grading.grade import runs_commands
from runs.execution.grading.requests import request_grading, wait_for_result
from runs.models import GradeRequest

router = Router(tags=["grade"])


class Patience(BaseModel):
    """How many seconds the answer may take where a worker grades."""

    wait: Annotated[float, Field(ge=0, le=60)] = 60.0


class WaitingOut(Schema):
    """The evidence is still graded; ask again at the address."""

    id: int
    url: str


_ANSWERS = {200: GradedOut, 202: WaitingOut, REFUSALS: ErrorOut}


@router.post("/grade", auth=Bearer("run"), response=_ANSWERS)
def grade(request: ApiRequest, given: Grading, query: Query[Patience]) -> Status[Any]:
    """Grade captured evidence by a scenario, with nothing stored; takes the role runner.

    Gates that run a command are left without a verdict, unless the token may run commands: then a worker
    grades, and where that takes longer than `wait` the answer is an address to ask at.
    """
    if not request.access.may("grade with commands") or not runs_commands(select_scenario(given)):
        return Status(200, grade_by_files(given))
    row = request_grading(request.access.project, given, by=request.access.user)
    return _answer(row, wait_for_result(row, query.wait))


@router.get("/grade/{request_id}", auth=Bearer("grade with commands"), response=_ANSWERS)
def get_grading(request: ApiRequest, request_id: Path[Key]) -> Status[Any]:
    """What came of evidence that a worker grades; kept for an hour."""
    row = GradeRequest.objects.filter(project=request.access.project, pk=request_id).first()
    if row is None:
        raise not_found("grading", request_id)
    return _answer(row, row.result)


def _answer(row: GradeRequest, result: dict[str, Any] | None) -> Status[Any]:
    if result is None:
        return Status(202, {"id": row.pk, "url": f"/api/v1/grade/{row.pk}"})
    if refused := result.get("refused"):
        raise ApiError(422, refused["detail"], id=refused["id"], problems=refused["problems"])
    return Status(200, result["graded"])
