"""A worker process says that it is here, so that people see who works and how commands are contained there."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from django.conf import settings
from django.db import Error, connections
from django.utils import timezone

from runs.models import Worker
from runs.queue.heartbeat import heartbeat
from runs.queue.worker_name import worker_name
from runs.settings_of_worker import containment

logger = logging.getLogger(__name__)

SAY_SECONDS = 15.0
FORGOTTEN_AFTER = timedelta(days=1)
"""A worker that said nothing for so long is no more listed."""


def say() -> None:
    """Write down that this process is here and what it is doing."""
    now = timezone.now()
    Worker.objects.update_or_create(
        name=worker_name(),
        defaults={
            "seen": now,
            "lanes": heartbeat.places(),
            "sandbox": containment().level.value,
            "version": settings.VERSION,
        },
    )
    Worker.objects.filter(seen__lt=now - FORGOTTEN_AFTER).delete()


def leave() -> None:
    """Take this process off the list; it ends in order."""
    Worker.objects.filter(name=worker_name()).delete()


def keep_saying(stop: threading.Event) -> threading.Thread:
    """Start a thread that says it until `stop` is set, and takes the process off the list then."""
    thread = threading.Thread(target=_loop, args=(stop,), name="presence", daemon=True)
    thread.start()
    return thread


def _loop(stop: threading.Event) -> None:
    while True:
        try:
            say()
            if stop.wait(SAY_SECONDS):
                leave()
                break
        except Error as error:
            # It may be away for a minute; who works here goes on.
            logger.warning("presence: %s", error)
            connections.close_all()
            if stop.wait(SAY_SECONDS):
                break
    connections.close_all()
