"""Leases of requested work: judging and grading again, proofs, and grading of captured evidence.

A worker that is silent for longer than its lease has lost the request, which ends with a sentence; results that the
worker stores later are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from runs.db.clock import DatabaseNow
from runs.db.transactions import write_transaction
from runs.errors import RequestError
from runs.models import GradeRequest, Reassessment, SuiteProof
from runs.workers.claims import lease_end

LOST_REASSESSMENT = "Its worker was lost. Request it again."
LOST_PROOF = "Its worker was lost. Prove the suite again."
LOST_GRADING = "The worker that graded it was lost. Send it again."


def _unfinished() -> Iterator[QuerySet[Any]]:
    yield Reassessment.objects.filter(finished=None)
    yield SuiteProof.objects.filter(finished=None)
    yield GradeRequest.objects.filter(result__isnull=True)


def renew(tokens: Sequence[str]) -> None:
    """Renew the leases under these tokens."""
    for rows in _unfinished() if tokens else ():
        rows.filter(token__in=tokens).update(lease_until=lease_end())


def hold(made: Reassessment | SuiteProof) -> None:
    """Keep a request from ending until the transaction ends. Raises `RequestError` if its worker has lost it."""
    held = type(made).objects.filter(pk=made.pk, token=made.token, finished=None)
    if not held.update(lease_until=lease_end()):
        raise RequestError(LOST_PROOF if isinstance(made, SuiteProof) else LOST_REASSESSMENT)


def end_lost() -> None:
    """End the requests whose worker has not renewed its lease in time: they wait for nobody."""
    reassessments, proofs, gradings = (rows.filter(lease_until__lt=DatabaseNow()) for rows in _unfinished())
    now = timezone.now()
    with write_transaction():
        reassessments.exclude(worker="").update(finished=now, error=LOST_REASSESSMENT)
        proofs.exclude(worker="").update(finished=now, error=LOST_PROOF)
        gradings.exclude(started=None).update(result=GradeRequest.refusal(LOST_GRADING, "grade/lost"))
