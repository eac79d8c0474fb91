"""Do one job in this process, or wait for what another makes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from runs.models import Job, TargetTry
from runs.workers import jobs
from runs.workers.heartbeat import heartbeat

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.1


def run_job(job_id: int, work: Callable[[Job], object]) -> bool:
    """Take a job, work on it while its lease is renewed, and end it unless the work put it off.

    Return False if somebody else has it, it isn't due, or this process lacks a label.
    """
    job = jobs.take(job_id)
    if job is None:
        return False
    with heartbeat.holding(job.token, "job"):
        # An error leaves it to the end of its lease, when the subject gets its sentence or another worker tries.
        try:
            work(job)
        except jobs.JobLost:
            logger.info("job %s (%s): another worker has it", job.pk, job)
        jobs.finish(job)
    return True


def wait_for_result(asked: TargetTry, seconds: float) -> None:
    """Wait so many seconds at most until a try has its result."""
    until = time.monotonic() + seconds
    while asked.result is None and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        asked.refresh_from_db()
