"""Wake-up messages to workers. A lost one only costs the time until the next tick."""

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
    # Imported here because the command line runs trials in its own process without Celery.
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
    """Ask workers to prepare these runs after the commit."""
    transaction.on_commit(lambda: prepare(run_ids))


def lanes() -> None:
    """Wake the workers: one message for each, which starts its free lanes.

    A worker that misses it finds the work within a second.
    """
    _send("wake_lanes", times=Worker.heard(now=timezone.now()).count())


def check_batch(run_id: int) -> None:
    """Ask a worker to check a run's batch."""
    _send("check_batch", run_id)


def check_target(check_id: int) -> None:
    """Ask a worker to check a target."""
    _send("check_target", check_id)


def grade(request_id: int) -> None:
    """Ask a worker to grade a stored request."""
    _send("grade", request_id)
