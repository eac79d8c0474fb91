"""Grading by a worker, because the web process runs no commands."""

from __future__ import annotations

import json
import logging
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from evalhub.lib.storable_text import storable_json
from evalhub.teams.models import Project
from runs.db.disk import CannotStore
from runs.db.request_job import request_job
from runs.db.retry import retry_when_lost
from runs.db.transactions import write_transaction
from runs.engine.grading.evidence import Grading
from runs.engine.grading.grade import grade_in_workspace
from runs.errors import ProviderError, RequestError
from runs.models import GradeRequest, Job
from runs.sandbox.worker_settings import containment
from runs.workers import wakeups
from scenarios.formats.problems import ScenarioFileError

logger = logging.getLogger(__name__)


def request_grading(project: Project, grading: Grading, *, by: User) -> GradeRequest:
    """Store a request and wake a worker."""
    with write_transaction():
        row = GradeRequest.objects.create(project=project, by=by, request=grading.model_dump(mode="json"))
        job = request_job(Job.Kind.GRADING, row.pk, expires=row.created + row.LIFETIME)
    wakeups.wake(job)
    return row


def grade_request(job: Job) -> None:
    """Grade a stored request; a failure becomes its result."""
    row = GradeRequest.objects.filter(pk=job.subject, result__isnull=True).first()
    if row is None:
        return
    result = _result(Grading.model_validate(row.request))
    # Output of commands may contain characters that databases reject.
    answer = json.loads(storable_json(result))
    retry_when_lost(lambda: row.finish(answer))


def _result(grading: Grading) -> dict[str, Any]:
    try:
        return {"graded": grade_in_workspace(grading, settings.WORK_DIR, containment())}
    except ScenarioFileError as error:
        problems = [problem.as_json() for problem in error.problems]
        return GradeRequest.refusal("The file has errors.", "files/refused", problems)
    except RequestError as error:
        return GradeRequest.refusal(str(error), error.id)
    except (ProviderError, CannotStore) as error:
        return GradeRequest.refusal(str(error), f"grade/{error.kind}")
    except Exception as error:
        # Broad because somebody waits for the result.
        logger.exception("grading: internal error")
        return GradeRequest.refusal(f"{type(error).__name__} in evalhub itself: {error}.", "grade/internal")
