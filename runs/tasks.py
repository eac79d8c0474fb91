"""Celery tasks: each calls one function. A lost message only costs the time until the next tick."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import BoundedSemaphore
from typing import ParamSpec

from celery import shared_task
from django.conf import settings
from django.db import Error
from django.utils import timezone

from runs.alerts.notifications import delivery
from runs.db.retry import is_connection_lost, outage
from runs.engine import batches, preparation
from runs.engine.lanes import lane_pool
from runs.engine.reaper import reap, take_abandoned
from runs.engine.stored_trials.reassessing import reassess
from runs.engine.trial import try_target
from runs.models import Job
from runs.suites.proofs_api import make_proof
from runs.targets.definitions import answer_check
from runs.workers import jobs, wakeups
from runs.workers.job_runner import run_job

P = ParamSpec("P")


def task(work: Callable[P, None]) -> Callable[P, None]:
    """Make a function a task. It ends without a traceback while the database is away: the tick asks for it again."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            work(*args, **kwargs)
        except Error as error:
            if not is_connection_lost(error):
                raise
            outage.note(error)

    celery_task: Callable[P, None] = shared_task(name=f"runs.tasks.{work.__name__}")(run)
    return celery_task


@task
def prepare(run_id: int) -> None:
    """Prepare a run, this one or another that is next by fair share, and wake lanes for it."""
    if (prepared := preparation.prepare_next(run_id)) is not None:
        lane_pool.wake()
        wakeups.wake_free_lanes(prepared)


@task
def wake_lanes() -> None:
    """Wake this worker's free lanes."""
    lane_pool.wake()


LONG = (Job.Kind.PROOF, Job.Kind.REASSESSMENT, Job.Kind.TRY)
"""Kinds of jobs that may take minutes."""
long_jobs = BoundedSemaphore(settings.TASK_THREADS - 1)
"""Leaves a thread to preparations and the tick."""


def follow_batch(job: Job) -> None:
    """Ask a provider about a run's batch; start the run's trials when it has ended."""
    if not batches.check_batch(job):
        lane_pool.wake()
        wakeups.wake_free_lanes(job.subject)


WORK: dict[str, Callable[[Job], object]] = {
    Job.Kind.PROOF: make_proof,
    Job.Kind.REASSESSMENT: reassess,
    Job.Kind.CHECK: answer_check,
    Job.Kind.TRY: try_target,
    Job.Kind.BATCH: follow_batch,
    Job.Kind.CHANNEL: delivery.deliver_channel,
}
"""What does each kind of job."""


@task
def do_job(job_id: int) -> None:
    """Do a job, unless it is a long one and all threads for these are busy: then the tick asks for it again."""
    kind = Job.objects.filter(pk=job_id).values_list("kind", flat=True).first()
    if kind is None:
        return
    if kind not in LONG:
        run_job(job_id, WORK[kind])
    elif long_jobs.acquire(blocking=False):
        try:
            run_job(job_id, WORK[kind])
        finally:
            long_jobs.release()


@task
def remove_old_notifications() -> None:
    """Remove old notifications."""
    delivery.remove_old(now=timezone.now())


@task
def tick() -> None:
    """Requeue the work of lost workers, close finished runs, and resend wake-ups for waiting work."""
    if reap():
        take_abandoned()
    wakeups.prepare_queued()
    jobs.remove_expired()
    wakeups.wake_for_waiting_jobs()
