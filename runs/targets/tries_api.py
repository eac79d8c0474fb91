"""Try a target with one prompt; a worker does it and no trial is stored."""

from __future__ import annotations

from typing import Annotated, Any

from django.conf import settings
from django.utils import timezone
from ninja import Path, Query, Router, Schema, Status
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import REFUSALS, ApiError, ErrorOut, not_found
from evalhub.web.rest.request_body import JsonValue, Key, RequestBody
from runs.engine.trying import LONGEST_OUTPUT, PROMPT, request_try
from runs.models import Target, TargetTry
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import define, read_target
from runs.targets.edits import NEW, accepts_at_once
from runs.targets.entries import TargetDefinition
from runs.targets.paths import refuse_saving
from runs.targets.target_fields import dump
from runs.workers.job_runner import wait_for_result

router = Router(tags=["targets"])


class TryIn(RequestBody):
    """A prompt for a stored target, or for a definition that isn't stored."""

    target: Annotated[Text, Field(max_length=120)] = ""
    definition: dict[Text, JsonValue] | None = None
    """Needs the author role; refused on a server."""
    prompt: Annotated[Text, Field(min_length=1, max_length=LONGEST_OUTPUT)] = PROMPT
    model: Annotated[Text, Field(max_length=200)] = ""


class TryOut(Schema):
    """A try and its result; `url` is where to poll."""

    id: int
    target: str
    state: str
    """waiting, finished, or expired if no worker answered."""
    worker: str
    url: str
    result: dict[str, Any] | None
    """`output`, `format`, `calls`, `answer`, tokens, `exit_code`, `notes`; or `error` with `error_kind`."""


class Patience(BaseModel):
    """Seconds to wait for the result."""

    wait: Annotated[float, Field(ge=0, le=60)] = 30.0


_ANSWERS = {200: TryOut, 202: TryOut, REFUSALS: ErrorOut}


@router.post("/target-tries", auth=Bearer("run"), response=_ANSWERS)
def try_target(request: ApiRequest, body: TryIn, query: Query[Patience]) -> Status[Any]:
    """Send a prompt to a target on a worker, sandboxed as in a trial; the result is kept for an hour.

    If it takes longer than `wait`, the answer is 202 with a URL to poll.
    """
    definition, base = _definition(request, body)
    access = request.access
    row = request_try(
        access.project, definition, body.prompt, by=access.user, model=body.model, base_folder=base
    )
    wait_for_result(row, query.wait)
    return _answer(row)


@router.get("/target-tries/{try_id}", auth=Bearer("run"), response=_ANSWERS)
def get_target_try(request: ApiRequest, try_id: Path[Key]) -> Status[Any]:
    """Get the result of a try."""
    row = TargetTry.objects.filter(project=request.access.project, pk=try_id).first()
    if row is None:
        raise not_found("try", try_id)
    return _answer(row)


def _definition(request: ApiRequest, body: TryIn) -> tuple[TargetDefinition, str]:
    """Return what to try, with its base folder. Raises `ApiError` and `ScenarioFileError`."""
    if (body.definition is None) == (not body.target):
        raise ApiError(422, "Give either `target` or `definition`.", id="request/invalid")
    if body.definition is not None:
        if not (settings.EMBEDDED and accepts_at_once(request.access)):
            sentence = "On a server, REST tries stored targets only. Try this definition on the targets page."
            raise ApiError(403, sentence, id="target/not-stored")
        definition = read_target(dump(body.definition).encode(), NEW)
        refuse_saving(definition, containment().targets, file=NEW, base="")
        return definition, ""
    target = Target.objects.filter(project=request.access.project, name=body.target, accepted=True).first()
    if target is None or target.is_imported:
        raise not_found("target", body.target)
    return define(target.definition, file=target.name), target.base_folder


def _answer(row: TargetTry) -> Status[Any]:
    waiting = row.is_waiting(now=timezone.now())
    state = "waiting" if waiting else ("finished" if row.result is not None else "expired")
    body = {"id": row.pk, "target": row.name, "state": state, "worker": row.worker, "result": row.result}
    return Status(202 if waiting else 200, body | {"url": f"/api/v1/target-tries/{row.pk}"})
