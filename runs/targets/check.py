"""Checks of targets, requested on a page and done by a worker because the web process runs no commands."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from evalhub.lib.storable_text import storable
from evalhub.teams import audit
from evaluators.redaction import mask_values
from runs.db.request_job import request_job
from runs.db.retry import retry_when_lost
from runs.db.transactions import write_transaction
from runs.errors import ProviderError
from runs.models import Job, Target, TargetCheck
from runs.sandbox.worker_settings import containment, variables_of
from runs.targets.definitions import resolve_target
from runs.targets.providers.base import Availability
from runs.targets.providers.registry import make_provider
from runs.workers import wakeups


def request_check(target: Target, *, by: User | None) -> TargetCheck:
    """Return the pending check of a target; create one if there is none.

    Older checks are deleted, except the last result.
    """
    now = timezone.now()
    newest = target.checks.first()
    if newest is not None and newest.is_waiting(now=now):
        return newest
    answered = target.checks.exclude(at=None).first()
    with write_transaction():
        target.checks.exclude(pk=answered.pk if answered else 0).delete()
        check = TargetCheck.objects.create(target=target, by=by if getattr(by, "pk", None) else None)
        expires = check.asked + check.PATIENCE
        job = request_job(Job.Kind.CHECK, check.pk, labels=target.labels, expires=expires)
        audit.append_event(target.project, by, "target.check", target.name)
    wakeups.wake(job)
    return check


def answer_check(job: Job) -> None:
    """Check a target on this machine and store the result."""
    asked = TargetCheck.objects.filter(pk=job.subject, at=None)
    check = asked.select_related("target__project").first()
    if check is None:
        return
    answer = _answer(check_target(check.target))
    retry_when_lost(lambda: asked.update(worker=_here(), **answer))


def store_availability(target: Target, availability: Availability) -> None:
    """Store the check that a run's preparation made, unless a check is pending.

    It replaces the last result. The sentence must not contain secrets.
    """
    newest = target.checks.first()
    if newest is not None and newest.is_waiting(now=timezone.now()):
        return
    check = TargetCheck.objects.create(target=target, worker=_here(), **_answer(availability))
    target.checks.filter(pk__lt=check.pk).delete()


def _here() -> str:
    return socket.gethostname()[:200]


def _answer(availability: Availability) -> dict[str, Any]:
    """Return the columns of a check that has just finished; available is None if nothing was tried."""
    return {
        "at": timezone.now(),
        "available": availability.available if availability.tried else None,
        "sentence": storable(availability.sentence),
        "version": storable(availability.version)[:200],
    }


def check_target(target: Target) -> Availability:
    """Return whether the target works on this machine; configuration errors are part of the answer."""
    try:
        resolved = resolve_target(target, variables_of(target.project))
        availability = make_provider(resolved, containment().for_target(resolved.options)).check()
    except ProviderError as error:
        return Availability(available=False, sentence=str(error))
    return replace(availability, sentence=mask_values(availability.sentence, resolved.secrets))
