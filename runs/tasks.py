"""Thin Celery tasks: each loads a row and calls one function. Losing a message costs the time to the next tick."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from runs.execution import batches, preparation
from runs.execution.grading.requests import run_request
from runs.execution.lane_pool import lane_pool
from runs.execution.reaper import reap
from runs.models import GradeRequest, Run, TargetCheck
from runs.models.run import RunState
from runs.queue import wakeups
from runs.targets.check import run_check

MOST_WOKEN = 100
"""Runs whose preparation one tick asks for; the next tick goes on."""


@shared_task(name="runs.tasks.prepare")
def prepare(run_id: int) -> None:
    """Prepare a run and wake lanes for it."""
    if preparation.prepare_run(run_id):
        lane_pool.wake()
        wakeups.lanes()


@shared_task(name="runs.tasks.wake_lanes")
def wake_lanes() -> None:
    """Let this worker's free lanes look for work."""
    lane_pool.wake()


@shared_task(name="runs.tasks.look_at_batch")
def look_at_batch(run_id: int) -> None:
    """Ask a provider how far a run's batch is; its trials begin when it has ended."""
    if not batches.waits(run_id):
        lane_pool.wake()
        wakeups.lanes()


@shared_task(name="runs.tasks.grade")
def grade(request_id: int) -> None:
    """Grade evidence with commands untriaged who waits."""
    run_request(request_id)


@shared_task(name="runs.tasks.check_target")
def check_target(check_id: int) -> None:
    """Look whether a target can work on this machine, untriaged who waits."""
    run_check(check_id)


@shared_task(name="runs.tasks.tick")
def tick() -> None:
    """Put back what lost workers held, close what was missed, and ask again for what is waiting."""
    reap()
    queued = Run.objects.filter(state=RunState.QUEUED, cancel_requested=False)
    wakeups.prepare(list(queued.order_by("pk").values_list("pk", flat=True)[:MOST_WOKEN]))
    for run_id in batches.due_runs():
        wakeups.look_at_batch(run_id)
    _look_after_questions()


def _look_after_questions() -> None:
    now = timezone.now()
    for check_id in TargetCheck.untaken(now=now).values_list("pk", flat=True)[:100]:
        wakeups.check_target(check_id)
    GradeRequest.remove_expired(now=now)
    for request_id in GradeRequest.unanswered(now=now).values_list("pk", flat=True)[:100]:
        wakeups.grade(request_id)
