"""Requeue the work of lost workers and close finished runs."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import Error
from django.utils import timezone

from runs.db.retry import is_connection_lost
from runs.db.transactions import database_now, write_transaction
from runs.engine import recording
from runs.engine.context import load_run
from runs.engine.workspace.tool_variables import refuse_missing_variables
from runs.errors import ProviderError, RequestError
from runs.models import Launch, LeaseCheck, Run
from runs.models.run import OPEN, RunState
from runs.workers import claims, jobs, worker_registry

logger = logging.getLogger(__name__)


GAP_SECONDS = 12.0
"""Beat asks for a check every 5 seconds; a longer gap than this means that the database, the broker or beat was away."""
RENEWING_SECONDS = 10.0
"""Seconds after a gap in which workers connect again and renew their leases, at most a lease's length."""
_ROW = 1


def may_take_expired() -> bool:
    """Note that leases are checked now; return False shortly after nobody checked them for a while."""
    with write_transaction():
        now = database_now()
        row, _ = LeaseCheck.objects.select_for_update().get_or_create(pk=_ROW, defaults={"checked": now})
        # Asked again: the row may have been locked.
        now = database_now()
        if now - row.checked > GAP_SECONDS:
            row.resumed = now
        row.checked = now
        row.save()
    return now - row.resumed >= min(RENEWING_SECONDS, settings.LEASE_SECONDS)


MOST_AT_ONCE = 20
"""Most launches that one tick looks at."""


def take_abandoned() -> None:
    """Leave launches whose process is gone to workers, if this one could run them. Safe to repeat."""
    for launch in claims.abandoned_launches().order_by("pk")[:MOST_AT_ONCE]:
        runs = Run.objects.filter(launch=launch, state__in=OPEN).values_list("pk", flat=True)
        problem = next(filter(None, map(_problem, runs)), "")
        if problem:
            logger.info("launch %s stays for its command to be resumed: %s", launch.pk, problem)
        else:
            claims.leave_to_workers(Launch.objects.filter(pk=launch.pk))


def _problem(run_id: int) -> str:
    """Return why this process can't run a run, such as a variable that only its command had; empty if it can."""
    try:
        context = load_run(run_id)
        for tool, _ in context.tools:
            refuse_missing_variables(tool.env, context.variables)
        _ = context.complete
    except (ProviderError, RequestError) as error:
        return str(error)
    return ""


MOST_FOLLOWED = 20
"""Most closed runs that one tick follows up."""
LOST_PREPARATION = (
    f"The worker was lost {claims.MOST_STARTS} times while it prepared this run. Look in the workers' logs at what ends "
    "them: memory, or a health check, version or snapshot command of the suite or its target."
)


def reap() -> bool:
    """Requeue lost work, record work lost too often as errors, and close cancelled or finished runs. Safe to repeat.

    Return False if nothing counts as lost now, because workers may not have had time to renew their leases.
    """
    may_take = may_take_expired()
    if may_take:
        _take_lost_work()
    for run_id in claims.halted_runs().values_list("pk", flat=True):
        recording.cancel_run(run_id)
    worker_registry.remove_silent()
    claims.remove_slots_of_closed_runs()
    for run_id in Run.objects.filter(state=RunState.RUNNING, open=0).values_list("pk", flat=True):
        recording.close_if_done(run_id)
    _follow_closed_runs()
    return may_take


def _take_lost_work() -> None:
    for trial_id in claims.requeue_lost():
        recording.record_lost(
            trial_id,
            f"Its worker was lost {claims.MOST_STARTS} times. Look at what the trial does to its worker.",
        )
    for run_id, token in claims.doomed_preparations():
        recording.fail_run(run_id, token, LOST_PREPARATION, [])
    jobs.end_lost()


def _follow_closed_runs() -> None:
    """Do what follows the close of runs whose worker was lost just after closing them."""
    since = timezone.now() - timedelta(seconds=settings.LEASE_SECONDS)
    closed = Run.objects.filter(
        followed_up=False, finished__lt=since, state__in=[RunState.FINISHED, RunState.CANCELLED]
    )
    for run in closed.select_related("project").order_by("finished")[:MOST_FOLLOWED]:
        try:
            recording.follow_close(run)
        except Exception as error:
            if isinstance(error, Error) and is_connection_lost(error):
                raise
            # Broad because every tick would end here otherwise.
            logger.exception("run %s: what follows its close failed", run.pk)
            Run.objects.filter(pk=run.pk).update(followed_up=True)
