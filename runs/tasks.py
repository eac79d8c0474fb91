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

from runs.alerts.notifications import delivery, digest
from runs.db.outage import outage
from runs.db.retry import is_connection_lost
from runs.engine import batches, preparation
from runs.engine.grading.requests import run_request
from runs.engine.lane_pool import lane_pool
from runs.engine.reaper import reap, take_abandoned
from runs.engine.stored_trials.reassessing import run_reassessment
from runs.engine.trying import run_try
from runs.models import GradeRequest, Reassessment, SuiteProof, TargetCheck, TargetTry
from runs.suites.proof_requests import run_proof
from runs.targets.check import run_check
from runs.workers import wakeups

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

    made: Callable[P, None] = shared_task(name=f"runs.tasks.{work.__name__}")(run)
    return made


@task
def prepare(run_id: int) -> None:
    """Prepare a run, this one or another that is next by fair share, and wake lanes for it."""
    if (prepared := preparation.prepare_next(run_id)) is not None:
        lane_pool.wake()
        wakeups.lanes(prepared)


@task
def wake_lanes() -> None:
    """Wake this worker's free lanes."""
    lane_pool.wake()


@task
def check_batch(run_id: int) -> None:
    """Check a run's batch with its provider; start its trials when the batch has ended."""
    if not batches.must_wait(run_id):
        lane_pool.wake()
        wakeups.lanes(run_id)


long_tasks = BoundedSemaphore(settings.TASK_THREADS - 1)
"""Leaves a thread to preparations and the tick."""


def _long_task(work: Callable[[int], None], key: int) -> None:
    """Do work that may take minutes, unless all threads for it are busy: then the tick asks for it again."""
    if long_tasks.acquire(blocking=False):
        try:
            work(key)
        finally:
            long_tasks.release()


@task
def grade(request_id: int) -> None:
    """Grade a stored request, with commands."""
    _long_task(run_request, request_id)


@task
def prove(proof_id: int) -> None:
    """Make a requested proof of a suite."""
    _long_task(run_proof, proof_id)


@task
def reassess(key: int) -> None:
    """Judge or grade a run's stored trials again."""
    _long_task(run_reassessment, key)


@task
def check_target(check_id: int) -> None:
    """Check whether a target works on this machine."""
    run_check(check_id)


@task
def try_target(try_id: int) -> None:
    """Try a target with a prompt on this machine."""
    _long_task(run_try, try_id)


@task
def deliver(channel_id: int) -> None:
    """Send what is due for a channel."""
    delivery.deliver_channel(channel_id)


@task
def digests() -> None:
    """Store the digests of last week that are missing, and remove old notifications."""
    now = timezone.now()
    digest.record_digests(now=now)
    delivery.remove_old(now=now)


@task
def tick() -> None:
    """Requeue the work of lost workers, close finished runs, and resend wake-ups for waiting work."""
    if reap():
        take_abandoned()
    wakeups.prepare_queued()
    for run_id in batches.due_runs():
        wakeups.check_batch(run_id)
    _resend_requests()
    _request_deliveries()


def _request_deliveries() -> None:
    now = timezone.now()
    delivery.fail_lost(now=now)
    for channel_id in delivery.due_channels(now=now):
        wakeups.deliver(channel_id)


def _resend_requests() -> None:
    now = timezone.now()
    for check_id in TargetCheck.untaken(now=now).values_list("pk", flat=True)[:100]:
        wakeups.check_target(check_id)
    for proof_id in SuiteProof.untaken(now=now).values_list("pk", flat=True)[:100]:
        wakeups.prove(proof_id)
    for key in Reassessment.untaken(now=now).values_list("pk", flat=True)[:100]:
        wakeups.reassess(key)
    for try_id in TargetTry.untaken(now=now).values_list("pk", flat=True)[:100]:
        wakeups.try_target(try_id)
    TargetTry.remove_expired(now=now)
    GradeRequest.remove_expired(now=now)
    for request_id in GradeRequest.unanswered(now=now).values_list("pk", flat=True)[:100]:
        wakeups.grade(request_id)
