"""Wake-up messages to workers. A lost one only costs the time until the next tick.

While the broker is away, workers find the same work by polling and do it themselves.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.module_loading import import_string

from runs.models import Job, Run
from runs.models.run import RunState
from runs.workers import jobs
from runs.workers.claims import is_ours
from runs.workers.labels import labels_online, own_labels, queue_for, with_labels
from runs.workers.worker_registry import labels_of_free_workers

logger = logging.getLogger(__name__)


MOST_WOKEN = 100
"""Most preparations, and most jobs of a kind, that are requested at once."""


Carrier = Callable[..., object]
"""Takes the name of a task and its arguments."""
_carrier: ContextVar[Carrier | None] = ContextVar("carrier", default=None)


@contextmanager
def carried_by(carrier: Carrier) -> Iterator[None]:
    """Pass wake-ups of this thread to `carrier` instead of the broker, those that this worker has the labels for."""
    token = _carrier.set(carrier)
    try:
        yield
    finally:
        _carrier.reset(token)


def _send(task: str, *args: int, times: int = 1, queue: str = "") -> bool:
    """Send a task `times` times. Return False if the broker is unavailable."""
    if carrier := _carrier.get():
        carrier(task, *args)
        return True
    # Imported here because the command line runs trials in its own process without Celery.
    from kombu.exceptions import OperationalError

    app = import_string(settings.CELERY_APP)
    try:
        for _ in range(times):
            app.send_task(f"runs.tasks.{task}", args=args, **({"queue": queue} if queue else {}))
    except OperationalError as error:
        logger.warning("The broker is away; the next tick sends %s%s again: %s", task, args, error)
        return False
    return True


def _queue(labels: Sequence[str], online: Sequence[Sequence[str]]) -> str | None:
    """Return the queue for work that needs these labels, empty for none; None while no worker online has them.

    A message that nobody consumes would stay with the broker; the tick asks again.
    """
    if _carrier.get():
        return "" if with_labels(labels, [own_labels()]) else None
    return (queue_for(labels, online) or None) if labels else ""


def ask_to_prepare(run_ids: Sequence[int]) -> None:
    """Ask workers to prepare these runs."""
    _prepare(Run.objects.filter(pk__in=run_ids).order_by("pk"))


def prepare_queued() -> None:
    """Ask workers to prepare the oldest queued runs that one of them may prepare."""
    queued = Run.objects.filter(is_ours(), state=RunState.QUEUED, cancel_requested=False)
    _prepare(queued.order_by("pk"), most=MOST_WOKEN)


def _prepare(runs: QuerySet[Run], most: int | None = None) -> None:
    online, sent = labels_online(), 0
    for run_id, labels in runs.values_list("pk", "target__labels").iterator():
        queue = _queue(labels, online)
        if queue is None:
            continue
        if not _send("prepare", run_id, queue=queue):
            # Each message to a broker that hangs would hold up the page for its timeout.
            return
        sent += 1
        if sent == most:
            return


def after_commit_prepare(run_ids: Sequence[int]) -> None:
    """Ask workers to prepare these runs after the commit."""
    transaction.on_commit(lambda: ask_to_prepare(run_ids))


def wake_free_lanes(run_id: int) -> None:
    """Wake the workers with a free lane and the labels of a run's target: one message starts all lanes of a worker.

    A worker that misses it finds the work within a second.
    """
    labels = Run.objects.values_list("target__labels", flat=True).get(pk=run_id)
    queue = _queue(labels, labels_online())
    if queue is not None:
        _send("wake_lanes", times=with_labels(labels, labels_of_free_workers()), queue=queue)


def wake_for_job(job: Job) -> None:
    """Ask a worker with a job's labels to do it."""
    _wake(job, labels_online())


def wake_for_waiting_jobs() -> None:
    """Ask workers to do the oldest jobs that are due, at most this many of each kind."""
    online, sent = labels_online(), Counter[str]()
    for job in jobs.due_jobs().order_by("pk").iterator():
        if sent[job.kind] < MOST_WOKEN:
            sent[job.kind] += _wake(job, online)


def wake_for_messages() -> None:
    """Ask workers to send the messages that are due. One query without any."""
    for job in jobs.due_jobs().filter(kind=Job.Kind.CHANNEL).order_by("pk")[:MOST_WOKEN]:
        wake_for_job(job)


def _wake(job: Job, online: Sequence[Sequence[str]]) -> bool:
    queue = _queue(job.labels, online)
    return queue is not None and _send("do_job", job.pk, queue=queue)
