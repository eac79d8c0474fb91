"""Grading by a worker, for those who may run commands; the web process only waits."""

from __future__ import annotations

import json
import time
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.teams.models import Project
from runs.errors import ProviderError, RequestError
from runs.execution.grading.evidence import Grading
from runs.execution.grading.grade import grade_in_workspace
from runs.models.grading import GradeRequest
from runs.queue import wakeups
from runs.queue.statements import storable_json
from runs.worker_settings import containment
from scenarios.formats.problems import ScenarioFileError

POLL_SECONDS = 0.1


def ask_worker(project: Project, wanted: Grading, *, by: User) -> GradeRequest:
    """Store a request and call for a worker."""
    row = GradeRequest.objects.create(project=project, by=by, request=wanted.model_dump(mode="json"))
    wakeups.grade(row.pk)
    return row


def wait_for_result(row: GradeRequest, seconds: float) -> dict[str, Any] | None:
    """Return the request's result, None where it takes longer than this."""
    until = time.monotonic() + seconds
    while row.result is None and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        row.refresh_from_db(fields=["result"])
    return row.result


def run_request(request_id: int) -> None:
    """Grade a stored request, once; whatever goes wrong is its result."""
    row = GradeRequest.claim(request_id, now=timezone.now())
    if row is not None:
        result = _result(Grading.model_validate(row.request))
        # What a command printed may hold what a database does not take.
        row.finish(json.loads(storable_json(result)))


def _result(wanted: Grading) -> dict[str, Any]:
    try:
        return {"graded": grade_in_workspace(wanted, settings.WORK_DIR, containment())}
    except ScenarioFileError as error:
        problems = [problem.as_json() for problem in error.problems]
        return _refused("The file cannot be taken as it is.", "files/refused", problems)
    except RequestError as error:
        return _refused(str(error), error.id)
    except ProviderError as error:
        return _refused(str(error), f"grade/{error.kind}")


def _refused(sentence: str, id: str, problems: list[dict[str, object]] | None = None) -> dict[str, Any]:
    return {"refused": {"detail": sentence, "id": id, "problems": problems or []}}
