"""The registry of running workers: which are online, and how each contains commands."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import Error, connections
from django.db.models import Count
from django.utils import timezone

from evalhub.lib.limits import LONGEST_ERROR
from runs.db.disk import disk_shortage, least_free_bytes, storage_guard
from runs.db.retry import outage
from runs.models import Trial, Worker
from runs.models.trial import TrialState
from runs.sandbox.worker_settings import containment
from runs.workers.claims import own_name, worker_name
from runs.workers.heartbeat import heartbeat as process_heartbeat
from runs.workers.labels import own_labels, with_labels

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
REMOVED_AFTER = timedelta(hours=1)
"""A worker silent for longer is removed from the registry."""


_written: dict[str, set[datetime]] = {}
"""When this process stored its last heartbeat, by its name; several times where it doesn't know which one arrived."""


def store_heartbeat(capacity: int, store_id: str = "") -> None:
    """Store that this process is running, with its lanes and state."""
    now = timezone.now()
    # Take another name if another process stored heartbeats under this one: each would hide the other's
    # labels.
    name = worker_name()
    namesakes = Worker.objects.filter(name=name)
    if name in _written and namesakes.exclude(seen__in=_written[name]).exists():
        namesakes.delete()
        own_name.extend()
        logger.warning("another worker has the name %s, so this one is now %s", name, own_name)
    _written.setdefault(worker_name(), set()).add(now)
    Worker.objects.update_or_create(
        name=worker_name(),
        defaults={
            "seen": now,
            "lanes": process_heartbeat.slots(),
            "capacity": capacity,
            "sandbox": containment().level.value,
            "version": settings.VERSION,
            "problem": storage_guard.blocking_reason()[:LONGEST_ERROR],
            "free_bytes": least_free_bytes(),
            "store": store_id,
            "labels": own_labels(),
            "has_judge": bool(settings.DEFAULT_JUDGE),
        },
    )
    _written[worker_name()] = {now}


def remove_silent() -> None:
    """Remove workers that were killed and so could not remove themselves."""
    Worker.objects.filter(seen__lt=timezone.now() - REMOVED_AFTER).delete()


def start(stop: threading.Event, capacity: int, store_id: Callable[[], str] = str) -> threading.Thread:
    """Start a thread that sends heartbeats until `stop` is set, and then removes the process from the registry.

    `capacity` is the number of its lanes. `store_id` returns the id of the file store, or an empty text while it can't be read.
    """
    store = _StoreId(store_id)
    threading.Thread(target=store.keep_reading, args=(stop,), name="store-id", daemon=True).start()
    thread = threading.Thread(target=_loop, args=(stop, capacity, store), name="worker-registry", daemon=True)
    thread.start()
    return thread


class _StoreId:
    """The id of the file store, read in its own thread, because the store may not answer."""

    def __init__(self, read: Callable[[], str]) -> None:
        self.known = ""
        """The last id that was read."""
        self._read = read

    def keep_reading(self, stop: threading.Event) -> None:
        """Read the id at the interval of heartbeats until `stop` is set."""
        while not stop.is_set():
            try:
                self.known = self._read() or self.known
            except Exception:
                # Broad because the next attempt may succeed, whatever the store's client raised.
                logger.exception("the file store's id cannot be read")
            stop.wait(HEARTBEAT_SECONDS)


def _loop(stop: threading.Event, capacity: int, store: _StoreId) -> None:
    while not stop.is_set():
        reported = store.known
        try:
            store_heartbeat(capacity, reported)
        except Error as error:
            # The database may be away for a minute; the lanes go on.
            outage.note(error)
            connections.close_all()
        _wait_for_next(stop, store, reported)
    try:
        # Remove this process from the registry before it ends.
        Worker.objects.filter(name=worker_name()).delete()
    except Error as error:
        outage.note(error)
    connections.close_all()


def _wait_for_next(stop: threading.Event, store: _StoreId, reported: str) -> None:
    """Wait until the next heartbeat is due, the store's id changed, or trials can't be stored or can again."""
    problem, end = storage_guard.blocking_reason(), time.monotonic() + HEARTBEAT_SECONDS
    # Interval of checks of disks and file store.
    while time.monotonic() < end and not stop.wait(1.0):
        # The text has the free space, which changes all the time.
        if bool(storage_guard.blocking_reason()) != bool(problem) or store.known != reported:
            return


def labels_of_free_workers() -> list[list[str]]:
    """Return the labels of each worker online that has a free lane and may start trials. Two queries."""
    running = Trial.objects.filter(state=TrialState.RUNNING).order_by()
    busy = dict(running.values_list("worker").annotate(Count("pk")))
    able = Worker.heard(now=timezone.now()).filter(problem="")
    online = able.values_list("name", "capacity", "labels")
    return [labels for name, capacity, labels in online if busy.get(name, 0) < capacity]


def workers_online(labels: Sequence[str] = ()) -> tuple[int, str]:
    """Return the number of workers online with these labels, and why they start no trials. One query."""
    rows = list(Worker.heard(now=timezone.now()).values_list("labels", "problem"))
    able = [(own, problem) for own, problem in rows if with_labels(labels, [own])]
    return len(able), next((problem for _, problem in able if problem), "") or disk_shortage()


class WorkerJudge(NamedTuple):
    """Whether a process that executes trials has a judge of its own (`LLM_TOOL_TEST_JUDGE`)."""

    has_judge: bool
    labels: Sequence[str] | None
    """None for the process that executes whatever the launch asks for."""

    def takes(self, labels: Sequence[str]) -> bool:
        """Return whether it may execute trials of a target with these labels."""
        return self.labels is None or set(labels) <= set(self.labels)


def find_own_judge() -> list[WorkerJudge]:
    """Return whether this process has a judge, for launches that it executes itself."""
    return [WorkerJudge(bool(settings.DEFAULT_JUDGE), None)]


def judges_of_workers() -> list[WorkerJudge]:
    """Return which workers online have a judge. One query."""
    return [WorkerJudge(*row) for row in Worker.heard(now=timezone.now()).values_list("has_judge", "labels")]


def any_judges() -> list[WorkerJudge]:
    """Return whether this process or which workers online have a judge. One query."""
    return [*find_own_judge(), *judges_of_workers()]
