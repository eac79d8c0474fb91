"""A worker process says that it is here, so that people see who works and how commands are contained there."""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta

from django.conf import settings
from django.db import Error, connections
from django.utils import timezone

from runs.models import Worker
from runs.queue.claims import worker_name
from runs.queue.disk import least_free_bytes, room, shortage
from runs.queue.heartbeat import heartbeat
from runs.worker_settings import containment

logger = logging.getLogger(__name__)

SAY_SECONDS = 15.0
LOOK_SECONDS = 1.0
"""How often the disks are looked at."""
LONGEST_PROBLEM = 500
FORGOTTEN_AFTER = timedelta(hours=1)
"""A worker that was silent for so long is not listed any more."""


def heartbeat_worker() -> None:
    """Write down that this process is here and what it is doing."""
    now = timezone.now()
    Worker.objects.update_or_create(
        name=worker_name(),
        defaults={
            "seen": now,
            "lanes": heartbeat.places(),
            "sandbox": containment().level.value,
            "version": settings.VERSION,
            "problem": room.problem()[:LONGEST_PROBLEM],
            "free_bytes": least_free_bytes(),
        },
    )


def forget_silent() -> None:
    """Take workers off the list that were killed: they could not do it themselves."""
    Worker.objects.filter(seen__lt=timezone.now() - FORGOTTEN_AFTER).delete()


def leave() -> None:
    """Take this process off the list; it ends in order."""
    Worker.objects.filter(name=worker_name()).delete()


def keep_saying(stop: threading.Event) -> threading.Thread:
    """Start a thread that says it until `stop` is set, and takes the process off the list then."""
    thread = threading.Thread(target=_loop, args=(stop,), name="presence", daemon=True)
    thread.start()
    return thread


def _loop(stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            heartbeat_worker()
        except Error as error:
            # It may be away for a minute; who works here goes on.
            logger.warning("presence: %s", error)
            connections.close_all()
        _wait_for_news(stop)
    try:
        leave()
    except Error as error:
        logger.warning("presence: %s", error)
    connections.close_all()


def _wait_for_news(stop: threading.Event) -> None:
    """Wait until it is time to heartbeat_worker it again, or a disk is full or has room again."""
    said, end = room.problem(), time.monotonic() + SAY_SECONDS
    while time.monotonic() < end and not stop.wait(LOOK_SECONDS):
        # How much room is missing changes all the time.
        if bool(room.problem()) != bool(said):
            return


def workers_online() -> tuple[int, str]:
    """Return how many workers were heard of lately, and why they start nothing, as when a disk is full. One query."""
    problems = list(Worker.heard(now=timezone.now()).values_list("problem", flat=True))
    return len(problems), next(filter(None, problems), "") or shortage()
