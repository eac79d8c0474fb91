"""Thin Celery tasks: each loads a row and calls one function. Losing a message costs the time to the next tick."""

from __future__ import annotations

import time

from celery import shared_task
from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from runs import lanes, preparation
from runs.grading.requests import carry_out
from runs.models import GradeRequest, Run, RunSlot, TargetCheck
from runs.models.run import RunState
from runs.queue import claims, wakeups
from runs.queue.clock import DatabaseNow, database_now
from runs.reaping import reap
from runs.targets.checking import carry_out_check
from runs.trials import batching

WAKE_AGAIN_SECONDS = 4.0
"""A run with free places and queued trials is called for again after this long."""
MOST_WOKEN = 100
"""Runs that one tick calls for; the next tick goes on."""


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
    # The target may have a place for another run now.
    for other in waiting_runs(settings.WORKER_THREADS):
        call_lanes(other)


@shared_task(name="runs.tasks.grade")
def grade(request_id: int) -> None:
    """Grade evidence with commands for somebody who waits."""
    carry_out(request_id)


@shared_task(name="runs.tasks.check_target")
def check_target(check_id: int) -> None:
    """Look whether a target can work on this machine, for somebody who waits."""
    carry_out_check(check_id)


@shared_task(name="runs.tasks.tick")
def tick() -> None:
    """Put back what lost workers held, close what was missed, and wake what is waiting."""
    reap()
    queued = Run.objects.filter(state=RunState.QUEUED, cancel_requested=False)
    wakeups.prepare(list(queued.order_by("pk").values_list("pk", flat=True)[:MOST_WOKEN]))
    for run_id in waiting_runs(MOST_WOKEN):
        call_lanes(run_id)
    for run_id in batching.due_runs():
        wakeups.lanes(run_id, 1)
    _look_after_questions()


def _look_after_questions() -> None:
    now = timezone.now()
    for check_id in TargetCheck.untaken(now=now).values_list("pk", flat=True)[:100]:
        wakeups.check_target(check_id)
    GradeRequest.remove_expired(now=now)
    for request_id in GradeRequest.unanswered(now=now).values_list("pk", flat=True)[:100]:
        wakeups.grade(request_id)


def waiting_runs(most: int) -> list[int]:
    """Return runs that have queued trials and a free place, and were not called for just now. One query."""
    free = RunSlot.objects.filter(run=OuterRef("pk"), lease_until__lt=DatabaseNow())
    quiet = claims.runs_with_work().filter(Exists(free), woken__lt=DatabaseNow() - WAKE_AGAIN_SECONDS)
    return list(quiet.order_by("pk").values_list("pk", flat=True)[:most])


def call_lanes(run_id: int) -> None:
    """Send as many wake-ups as the run has use for, up to what one worker process can take."""
    called = Run.objects.filter(pk=run_id, woken__lt=DatabaseNow() - 0.05).update(woken=database_now())
    if called:
        wakeups.lanes(run_id, claims.usable_lanes(run_id, 4 * settings.WORKER_THREADS))
