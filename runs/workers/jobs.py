"""Jobs: one worker takes a job, keeps its lease, and ends it or lets it wait again.

A worker that is silent for longer than its lease has lost its job. What must not happen twice ends with a sentence
then, and what the worker stores later is refused; another worker continues a batch or a channel's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from runs.db.retry import retry_when_lost
from runs.db.transactions import DatabaseNow, lease_end, new_token, write_transaction
from runs.errors import RequestError
from runs.labels import LabelsWithin
from runs.models import Job, Launch, Reassessment, SuiteProof, TargetCheck, TargetTry
from runs.workers.claims import is_ours, worker_name
from runs.workers.labels import own_labels

Kind = Job.Kind
LOST = {
    Kind.PROOF: "Its worker was lost. Prove the suite again.",
    Kind.REASSESSMENT: "Its worker was lost. Request it again.",
    Kind.CHECK: "Its worker was lost. Check the target again.",
    Kind.TRY: "Its worker was lost. Try the target again.",
}
"""What a subject says whose worker was lost; jobs of other kinds are taken again."""


class JobLost(RequestError):
    """Another worker has the job, or it has ended."""


def due_jobs() -> QuerySet[Job]:
    """Return the jobs that are due and that nobody works on."""
    ours = Q(launch=None) | Exists(Launch.objects.filter(is_ours(""), pk=OuterRef("launch")))
    unexpired = Q(expires=None) | Q(expires__gt=timezone.now())
    return Job.objects.filter(ours, unexpired, token="", due__lte=DatabaseNow())


def take_job(job_id: int) -> Job | None:
    """Return a waiting job to the first worker with its labels that takes it, None to any other."""
    token = new_token()
    free = due_jobs().filter(LabelsWithin("labels", own_labels()), pk=job_id)
    held = Job.objects.filter(pk=job_id, token=token)

    def claim() -> bool:
        with write_transaction():
            values = {"worker": worker_name(), "token": token, "lease_until": lease_end()}
            return free.update(attempts=F("attempts") + 1, **values) == 1

    taken = retry_when_lost(claim, committed=lambda: held.exists() or None)
    return held.first() if taken else None


def hold_job(job: Job) -> None:
    """Keep a job from ending until the transaction ends. Raises `JobLost` if its worker has lost it."""
    if not _own_row(job).update(lease_until=lease_end()):
        raise JobLost(LOST.get(Kind(job.kind), "Its worker was lost."))


def finish(job: Job) -> None:
    """End a job, unless its worker has lost it; one that became due again meanwhile waits."""
    retry_when_lost(lambda: _own_row(job).filter(due=job.due).delete()[0] or _own_row(job).update(token=""))


def put_off(job: Job, seconds: float) -> None:
    """Let a job wait again and be due in these seconds, unless its worker has lost it or it became due again."""
    later = {"token": "", "due": DatabaseNow() + seconds}
    retry_when_lost(
        lambda: _own_row(job).filter(due=job.due).update(**later) or _own_row(job).update(token="")
    )


def renew_jobs(tokens: Sequence[str]) -> None:
    """Renew the leases under these tokens."""
    if tokens:
        Job.objects.filter(token__in=tokens).update(lease_until=lease_end())


def end_lost() -> None:
    """End the jobs whose worker has not renewed its lease in time, or let them wait again."""
    lost = Job.objects.filter(lease_until__lt=DatabaseNow()).exclude(token="")
    if not lost.exists():
        return
    with write_transaction():
        for job in lost.select_for_update():
            if job.kind in LOST:
                _END[Kind(job.kind)](job, LOST[Kind(job.kind)])
                job.delete()
            else:
                Job.objects.filter(pk=job.pk).update(token="", due=0.0)


def remove_expired() -> None:
    """Remove the jobs that no worker has taken in time, and what is kept of tries for a while."""
    now = timezone.now()
    Job.objects.filter(token="", expires__lt=now).delete()
    TargetTry.objects.filter(created__lt=now - TargetTry.LIFETIME).delete()


def _own_row(job: Job) -> QuerySet[Job]:
    return Job.objects.filter(pk=job.pk, token=job.token)


def _end_proof(job: Job, sentence: str) -> object:
    asked = SuiteProof.objects.filter(pk=job.subject, finished=None)
    return asked.update(finished=timezone.now(), error=sentence)


def _end_reassessment(job: Job, sentence: str) -> object:
    asked = Reassessment.objects.filter(pk=job.subject, finished=None)
    return asked.update(finished=timezone.now(), error=sentence)


def _end_check(job: Job, sentence: str) -> object:
    asked = TargetCheck.objects.filter(pk=job.subject, at=None)
    return asked.update(at=timezone.now(), worker=job.worker, sentence=sentence)


def _end_try(job: Job, sentence: str) -> object:
    refusal = {"error": sentence, "error_kind": "lost"}
    return TargetTry.objects.filter(pk=job.subject, result__isnull=True).update(result=refusal)


_END: dict[Kind, Callable[[Job, str], object]] = {
    Kind.PROOF: _end_proof,
    Kind.REASSESSMENT: _end_reassessment,
    Kind.CHECK: _end_check,
    Kind.TRY: _end_try,
}
