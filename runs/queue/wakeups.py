"""Messages to workers. They carry no work: losing one costs the time until the next tick."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from runs.models import Worker

logger = logging.getLogger(__name__)


def _send(task: str, *args: int, times: int = 1) -> None:
    # Imported here, for the command line runs trials in its own process without Celery.
    from kombu.exceptions import OperationalError

    app = import_string(settings.CELERY_APP)
    try:
        for _ in range(times):
            app.send_task(f"runs.tasks.{task}", args=args)
    except OperationalError as error:
        logger.warning("The broker is away; the next tick sends %s%s again: %s", task, args, error)


def prepare(run_ids: Sequence[int]) -> None:
    """Ask workers to prepare these runs."""
    for run_id in run_ids:
        _send("prepare", run_id)


def after_commit_prepare(run_ids: Sequence[int]) -> None:
    """Ask workers to prepare these runs once they are stored."""
    transaction.on_commit(lambda: prepare(run_ids))


def lanes() -> None:
    """Let workers' free lanes look for work: one message for each worker, which starts as many lanes as it has free.

    A worker that gets none finds the work within a second by itself.
    """
    _send("wake_lanes", times=Worker.heard(now=timezone.now()).count())


def look_at_batch(run_id: int) -> None:
    """Ask a worker to look how far a run's batch is."""
    _send("look_at_batch", run_id)


def check_target(check_id: int) -> None:
    """Ask a worker whether a target can work there."""
    _send("check_target", check_id)


def grade(request_id: int) -> None:
    """Ask a worker to grade a stored request."""
    _send("grade", request_id)
