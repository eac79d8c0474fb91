"""Thin Celery tasks: each loads a row and calls one function. Losing a message costs the time to the next tick."""

from __future__ import annotations

import time

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from runs import claims, lanes, preparation, wakeups
from runs.clock import DatabaseNow, database_now
from runs.grading.requests import carry_out
from runs.models import GradeRequest, Run
from runs.models.run import RunState
from runs.reaping import reap

WAKE_AGAIN_SECONDS = 4.0
"""A run with free places and queued trials is called for again after this long."""


@shared_task(name="runs.tasks.prepare")
def prepare(run_id: int) -> None:
    """Prepare a run and call for its lanes."""
    if preparation.prepare_run(run_id):
        call_lanes(run_id)


@shared_task(name="runs.tasks.lane")
def lane(run_id: int) -> None:
    """Carry trials of a run for a time slice."""
    if lanes.work(run_id, until=time.monotonic() + lanes.SLICE_SECONDS):
        wakeups.lanes(run_id, 1)
    for other in waiting_runs():
        call_lanes(other)


@shared_task(name="runs.tasks.grade")
def grade(request_id: int) -> None:
    """Grade evidence with commands for somebody who waits."""
    carry_out(request_id)


@shared_task(name="runs.tasks.tick")
def tick() -> None:
    """Put back what lost workers held, close what was missed, and wake what is waiting."""
    reap()
    queued = Run.objects.filter(state=RunState.QUEUED, cancel_requested=False)
    wakeups.prepare(list(queued.values_list("pk", flat=True)[:100]))
    for run_id in waiting_runs():
        call_lanes(run_id)
    _look_after_grading()


def _look_after_grading() -> None:
    now = timezone.now()
    GradeRequest.remove_expired(now=now)
    for request_id in GradeRequest.unanswered(now=now).values_list("pk", flat=True)[:100]:
        wakeups.grade(request_id)


def waiting_runs() -> list[int]:
    """Return runs that have queued trials and a free place, and were not called for just now."""
    quiet = claims.runs_with_work().filter(woken__lt=DatabaseNow() - WAKE_AGAIN_SECONDS)
    return [run_id for run_id in quiet.values_list("pk", flat=True)[:100] if claims.free_run_slots(run_id)]


def call_lanes(run_id: int) -> None:
    """Send as many wake-ups as the run has free places, up to what one worker process can take."""
    called = Run.objects.filter(pk=run_id, woken__lt=DatabaseNow() - 0.05).update(woken=database_now())
    if called:
        wakeups.lanes(run_id, min(claims.free_run_slots(run_id), 4 * settings.WORKER_THREADS))
