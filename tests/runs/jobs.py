"""Jobs of requested work, done in the test's process as by a worker."""

from __future__ import annotations

from typing import Any

from runs.models import Channel, Job, Reassessment, Run, SuiteProof, TargetCheck, TargetTry
from runs.tasks import WORK
from runs.workers.job_runner import run_job

KINDS = {
    SuiteProof: Job.Kind.PROOF,
    Reassessment: Job.Kind.REASSESSMENT,
    TargetCheck: Job.Kind.CHECK,
    TargetTry: Job.Kind.TRY,
    Run: Job.Kind.BATCH,
    Channel: Job.Kind.CHANNEL,
}


def job_of(subject: Any) -> Job:
    """Return the job of a request, of a run's batch or of a channel."""
    return Job.objects.get(kind=KINDS[type(subject)], subject=subject.pk)


def do_job(subject: Any) -> bool:
    """Do a subject's job; return False if nobody may take it now, or it has none."""
    job = Job.objects.filter(kind=KINDS[type(subject)], subject=subject.pk).first()
    return job is not None and run_job(job.pk, WORK[job.kind])


def lapse_jobs() -> None:
    """Let the lease of every job that is taken end."""
    Job.objects.exclude(token="").update(lease_until=1.0)


def deliver_due() -> int:
    """Do the jobs of channels that are due; return how many messages were attempted."""
    from runs.models import Delivery

    before = _attempts(Delivery)
    for job in Job.objects.filter(kind=Job.Kind.CHANNEL).order_by("subject"):
        run_job(job.pk, WORK[job.kind])
    return _attempts(Delivery) - before


def _attempts(model: Any) -> int:
    return sum(model.objects.values_list("attempts", flat=True))
