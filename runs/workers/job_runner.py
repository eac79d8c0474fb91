"""Do one job in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable

from runs.models import Job
from runs.workers import jobs
from runs.workers.heartbeat import heartbeat

logger = logging.getLogger(__name__)


def run_job(job_id: int, work: Callable[[Job], object]) -> bool:
    """Take a job, work on it while its lease is renewed, and end it unless the work put it off.

    Return False if somebody else has it, it isn't due, or this process lacks a label.
    """
    job = jobs.take_job(job_id)
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
